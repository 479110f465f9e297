import react from "@vitejs/plugin-react";

export default { base: "./", mode: "development", plugins: [react()], build: { assetsInlineLimit: 0, minify: false } };
