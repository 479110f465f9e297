import { fileURLToPath } from "node:url";

/** @type {import("next").NextConfig} */
export default {
  reactStrictMode: true,
  // The packages of all applications are one folder up.
  turbopack: { root: fileURLToPath(new URL("..", import.meta.url)) },
};
