export default { base: "./", build: { assetsInlineLimit: 0 } };
