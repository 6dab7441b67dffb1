export default { input: "./openapi.json", output: { path: "generated/hey", importFileExtension: ".ts" } };
