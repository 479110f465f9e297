import assert from "node:assert/strict";
import { test } from "vitest";
import { Secrets } from "../src/model/secrets.js";

test("secrets are hidden everywhere", () => {
  const secrets = new Secrets();
  const masked = JSON.stringify(
    secrets.mask({
      type: "session.start",
      ticket: "Zx3kQm0",
      resume: { session_id: "voice-1", token: "rt_1", last_seq: 4 },
      protocols: ["voicegw.v1", "voicegw.ticket.Zx3kQm0-_9"],
      note: "approve cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ, please",
      list: [{ resume_token: "rt_2" }, null, 7, true],
    }),
  );
  for (const secret of ["Zx3kQm0", "rt_1", "rt_2", "cf_VNCC"]) {
    assert.ok(!masked.includes(secret), secret);
  }
  assert.ok(masked.includes('"session_id":"voice-1"') && masked.includes('"last_seq":4'));
});

test("a question and its answer still match", () => {
  const secrets = new Secrets();
  assert.deepEqual(secrets.mask({ token: "cf_AAAAAAAAAAAAAAAAAAAAAAAAAA" }), { token: "(hidden 1)" });
  assert.deepEqual(secrets.mask({ token: "cf_BBBBBBBBBBBBBBBBBBBBBBBBBB" }), { token: "(hidden 2)" });
  assert.deepEqual(secrets.mask({ preview: "Run cf_AAAAAAAAAAAAAAAAAAAAAAAAAA?" }), { preview: "Run (hidden 1)?" });
});

test("hidden or empty values get no number", () => {
  const secrets = new Secrets();
  assert.deepEqual(secrets.mask({ ticket: "***", token: "" }), { ticket: "(hidden)", token: "(hidden)" });
  assert.deepEqual(secrets.mask({ token: 12 }), { token: 12 });
  assert.equal(secrets.mask("cf_SHORT"), "cf_SHORT");
});

test("the memory for secrets is limited", () => {
  const secrets = new Secrets();
  for (let i = 0; i < 1500; i++) {
    secrets.mask({ token: `t${i}` });
  }
  assert.deepEqual(secrets.mask({ token: "t999" }), { token: "(hidden 1000)" });
  assert.deepEqual(secrets.mask({ token: "t1499" }), { token: "(hidden 1001)" });
});
