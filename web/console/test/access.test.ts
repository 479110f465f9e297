// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import { Access } from "../src/control/access.js";

interface Asked {
  path: string;
  authorization: string | null;
  body: string;
}

/** A gateway that gives these answers in order, and its requests. */
function gateway(...answers: { status: number; body?: object }[]) {
  const asked: Asked[] = [];
  const ask = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    asked.push({ path: String(input), authorization: new Headers(init.headers).get("authorization"), body: String(init.body ?? "") });
    const { status, body } = answers.shift()!;
    return new Response(JSON.stringify(body ?? {}), { status });
  };
  return { asked, access: new Access(ask as typeof fetch) };
}

beforeEach(() => {
  sessionStorage.clear();
  history.replaceState(null, "", "/?a=b");
});

test("a link opens the page and removes its code from the address", async () => {
  history.replaceState(null, "", "/?a=b#code=ABC234");
  const { asked, access } = gateway({ status: 200, body: { token: "T0KEN" } }, { status: 200 });
  const entering = access.enter();
  expect(location.hash).toBe(""); // at once, before any answer
  expect(location.search).toBe("?a=b");
  await entering;
  expect(access.state.value).toBe("open");
  expect(access.key).toBe("T0KEN");
  await access.request("v1/simulator", { headers: { accept: "application/json" } });
  expect(asked).toEqual([
    { path: "v1/console/login", authorization: null, body: '{"code":"ABC234"}' },
    { path: "v1/simulator", authorization: "Bearer T0KEN", body: "" },
  ]);
});

test("a reload of the tab keeps it open, another tab does not", async () => {
  sessionStorage.setItem("voicegw.console", "T0KEN");
  const { access } = gateway();
  await access.enter();
  expect(access.key).toBe("T0KEN");
  sessionStorage.clear();
  expect(gateway().access.state.value).toBe("shut");
});

test("a used link opens nothing and closes nothing", async () => {
  history.replaceState(null, "", "/#code=ABC234");
  const late = gateway({ status: 401 });
  await late.access.enter();
  expect(late.access.state.value).toBe("refused");
  expect(late.access.key).toBeUndefined();
  sessionStorage.setItem("voicegw.console", "T0KEN");
  history.replaceState(null, "", "/#code=ABC234");
  const open = gateway({ status: 401 });
  await open.access.enter();
  expect(open.access.state.value).toBe("open");
});

test("an unknown token is deleted", async () => {
  sessionStorage.setItem("voicegw.console", "T0KEN");
  const { access } = gateway({ status: 401 }, { status: 401 });
  await access.request("v1/simulator");
  expect(access.state.value).toBe("ended");
  expect(sessionStorage.getItem("voicegw.console")).toBeNull();
  await access.request("v1/simulator");
  expect(access.state.value).toBe("ended");
});

test("other fragments are ignored", async () => {
  history.replaceState(null, "", "/#code=<script>");
  const { asked, access } = gateway();
  await access.enter();
  expect(asked).toEqual([]);
  expect(location.hash).not.toBe("");
});
