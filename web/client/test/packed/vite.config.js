export default { build: { rollupOptions: { input: "main.js" }, assetsInlineLimit: 0 } };
