// Vitest loads this before each test file. It stops leftover processes and removes folders after the file's tests.
import { afterAll } from "vitest";
import { end } from "./folder.ts";

afterAll(end);
