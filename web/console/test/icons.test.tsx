import assert from "node:assert/strict";
import { test } from "vitest";
import * as icons from "../src/ui/icons.js";

test("no element of an icon is shared between two of it, for it would hold on to every tree it was in", () => {
  for (const [name, icon] of Object.entries(icons)) {
    const [one, another] = [icon(), icon()];
    assert.notEqual(one, another, name);
    assert.notEqual(one.props.children, another.props.children, name);
  }
});
