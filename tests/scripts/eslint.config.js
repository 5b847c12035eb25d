// Names are tsc's business (undefined ones, too); here is what types do not see.

import js from "@eslint/js";

export default [
  { ignores: ["**/node_modules/"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      eqeqeq: "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      // The page's scripts are joined into one scope: what shadows a name there is easily mistaken for it.
      "no-redeclare": "error",
      "no-console": "error",
      // Text from a capture becomes text nodes, and nothing else.
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc"].map((property) => ({ property, message: "Text only ever becomes a text node." })),
        ...["write", "writeln"].map((property) => ({ object: "document", property, message: "Text only ever becomes a text node." })),
      ],
    },
  },
  // It has to run where the other scripts cannot: what is newer than ECMAScript 5 is an error here.
  { files: ["**/loading.js"], languageOptions: { ecmaVersion: 5, sourceType: "script" }, rules: { "no-var": "off", "no-unused-vars": ["error", { caughtErrors: "none" }] } },
];
