const { Tenure, WrongOption } = require("tenure");
const assert = require("node:assert");

assert.throws(() => new Tenure({ nmespace: "x" }), WrongOption);
console.log("require: runs");
