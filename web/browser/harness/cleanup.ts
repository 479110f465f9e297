// Vitest loads this before each file of tests: what a test that failed has left running, and every folder, goes
// when the file's tests are over.
import { afterAll } from "vitest";
import { end } from "./folder.ts";

afterAll(end);
