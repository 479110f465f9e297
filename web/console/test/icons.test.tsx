import assert from "node:assert/strict";
import { test } from "vitest";
import * as icons from "../src/ui/icons.js";

test("two instances of an icon share no element, which would keep every tree of it in memory", () => {
  for (const [name, icon] of Object.entries(icons)) {
    const [one, another] = [icon(), icon()];
    assert.notEqual(one, another, name);
    assert.notEqual(one.props.children, another.props.children, name);
  }
});
