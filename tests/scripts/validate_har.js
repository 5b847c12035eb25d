/* Says what is wrong with HAR files, as the schema of har-schema and the formats that it names have it. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);
const ajv = new (load("ajv"))({ format: "full", allErrors: true });
ajv.addMetaSchema(load("ajv/lib/refs/json-schema-draft-06.json"));
ajv.addSchema(Object.values(load("har-schema")));
const isValid = ajv.getSchema("har.json#");

for (const path of process.argv.slice(2)) {
  if (isValid(JSON.parse(readFileSync(path, "utf-8")))) continue;
  process.stderr.write(`${path}: ${ajv.errorsText(isValid.errors, { separator: "\n" })}\n`);
  process.exitCode = 1;
}
