//! The server's description of itself, `/openapi.json`, and the differences between it and the calls of these tests.
//!
//! It knows the words of JSON Schema that the description uses, and panics at any other, so that none goes unchecked.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use tenure_core::time::Moment;

use crate::wire::{Answer, Server};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const PROBLEM: &str = "application/problem+json";
const STREAM: &str = "text/event-stream";

/// Words of a schema that explain, and bound no value.
const EXPLAINING: [&str; 3] = ["description", "title", "examples"];

/// The document, with all its schemas.
pub struct Description(Value);

impl Description {
    /// The document that a server of this build answers.
    pub fn of_this_build() -> &'static Self {
        static DOCUMENT: OnceLock<Description> = OnceLock::new();
        DOCUMENT.get_or_init(|| Description(Server::start().get_as_it_is("/openapi.json").good()))
    }

    pub fn document(&self) -> &Value {
        &self.0
    }

    /// Method and path of each operation.
    pub fn routes(&self) -> BTreeSet<String> {
        let paths = self.0["paths"].as_object().unwrap().iter();
        let routes = paths.flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        });
        routes.collect()
    }

    /// The path of the document that fits this one, which may have a query; `None`: the server has no such route.
    pub fn route(&self, method: &str, path: &str) -> Option<&str> {
        let method = method.to_lowercase();
        let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
        let fits = |known: &str| {
            let known: Vec<&str> = known.split('/').collect();
            let mut pairs = known.iter().zip(&parts);
            known.len() == parts.len()
                && pairs.all(|(known, part)| known == part || known.starts_with('{'))
        };
        let paths = self.0["paths"].as_object().unwrap().iter();
        let fitting = paths.filter(|(path, methods)| fits(path) && methods.get(&method).is_some());
        // The one with the fewest names: /v1/jobs/cancel is not the job "cancel".
        fitting.map(|(path, _)| path.as_str()).min_by_key(|path| path.matches('{').count())
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        Some(&self.0["paths"][self.route(method, path)?][method.to_lowercase()])
    }

    /// Panics if an answer is not as described.
    pub fn check(&self, method: &str, path: &str, answer: &Answer) {
        let faults = self.faults_of_answer(method, path, answer);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// The differences between the body of an accepted call and its description.
    pub fn faults_of_body(&self, method: &str, path: &str, body: &Value) -> Vec<String> {
        let Some(operation) = self.operation(method, path) else { return Vec::new() };
        let schema = &operation["requestBody"]["content"][JSON]["schema"];
        // Routes that take no body take an empty object.
        let schema = if schema.is_null() { &json!({"enum": [{}]}) } else { schema };
        self.faults(schema, body, &format!("body of {method} {path}"))
    }

    /// The differences between an answer and its description.
    pub fn faults_of_answer(&self, method: &str, path: &str, answer: &Answer) -> Vec<String> {
        let said = format!("{method} {path} {}", answer.status);
        let media = answer.header("content-type").map(|media| media.split(';').next().unwrap());
        // HEAD has no body; no server but one of tests has the clock.
        if method == "HEAD" || path.starts_with("/v1/test/") {
            return Vec::new();
        }
        let operation = self.operation(method, path);
        let described = operation.and_then(|of| of["responses"].get(answer.status.to_string()));
        let Some(described) = described else {
            let problem = json!({"$ref": "#/components/schemas/Problem"});
            return match media {
                Some(PROBLEM) => self.faults(&problem, &answer.json(), &said),
                _ => vec![format!("{said} is not described, and is no problem but {media:?}")],
            };
        };
        let Some(content) = described["content"].as_object() else {
            let is_empty = answer.body.is_empty();
            return if is_empty { Vec::new() } else { vec![format!("{said} has a body")] };
        };
        if !content.contains_key(media.unwrap_or_default()) {
            return vec![format!("{said} is {media:?}, and {:?} is described", content.keys())];
        }
        match media {
            Some(JSON) => self.faults(&content[JSON]["schema"], &answer.json(), &said),
            // Each line is the answer to a line of the body.
            Some(LINES) => {
                let named = |name| json!({"$ref": format!("#/components/schemas/{name}")});
                let either = json!({"anyOf": [named("PushedId"), named("Problem")]});
                let lines = answer.lines().into_iter();
                lines.flat_map(|line| self.faults(&either, &line, &said)).collect()
            }
            Some(STREAM) => {
                let event = json!({"$ref": "#/components/schemas/Event"});
                let data = answer.text().lines().filter_map(|line| line.strip_prefix("data:"));
                let data = data.map(|data| serde_json::from_str(data).unwrap());
                data.flat_map(|data: Value| self.faults(&event, &data, &said)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The differences between a value and a schema of the document, each with its pointer.
    pub fn faults(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        faults(&self.0, schema, value, at)
    }
}

/// The differences between a value and a schema of a document.
fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema} is no schema"));
    let mut found = Vec::new();
    for (word, bound) in schema {
        match word.as_str() {
            "$ref" => {
                let named = document.pointer(bound.as_str().unwrap().trim_start_matches('#'));
                found.extend(faults(document, named.unwrap(), value, at));
            }
            "anyOf" | "oneOf" => found.extend(of_forms(document, word, bound, value, at)),
            "properties" => found.extend(of_fields(document, schema, value, at)),
            "additionalProperties" => {
                let fields = value.as_object().into_iter().flatten();
                found.extend(fields.flat_map(|(name, field)| {
                    faults(document, bound, field, &format!("{at}/{name}"))
                }));
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                found.extend(
                    items.flat_map(|(n, item)| faults(document, bound, item, &format!("{at}/{n}"))),
                );
            }
            "required" => {
                let names = bound.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let absent = names.filter(|name| value.is_object() && value.get(name).is_none());
                found.extend(absent.map(|name| format!("{at}: {name} is required and absent")));
            }
            word if EXPLAINING.contains(&word) => {}
            word if fits(word, bound, value) => {}
            word => found.push(format!("{at}: {value} is not of {word} {bound}")),
        }
    }
    found
}

/// Whether a value fits a bound that it has as a whole. A bound of another type says nothing about it.
fn fits(word: &str, bound: &Value, value: &Value) -> bool {
    let (text, number) = (value.as_str(), value.as_i64());
    let length = value.as_array().map(|items| items.len() as u64);
    match word {
        "const" => bound == value,
        "enum" => bound.as_array().unwrap().contains(value),
        "type" => match bound.as_str().unwrap() {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("the type {other} is not known here"),
        },
        "minimum" => number.is_none_or(|number| number >= bound.as_i64().unwrap()),
        "maximum" => number.is_none_or(|number| number <= bound.as_i64().unwrap()),
        "minItems" => length.is_none_or(|length| length >= bound.as_u64().unwrap()),
        "maxItems" => length.is_none_or(|length| length <= bound.as_u64().unwrap()),
        "maxLength" => {
            text.is_none_or(|text| text.chars().count() as u64 <= bound.as_u64().unwrap())
        }
        "format" if bound == "date-time" => text.is_none_or(|text| text.parse::<Moment>().is_ok()),
        _ => panic!("the word {word} of a schema is not known here"),
    }
}

/// The differences between a value and the forms that it may have.
fn of_forms(document: &Value, word: &str, forms: &Value, value: &Value, at: &str) -> Vec<String> {
    let forms = forms.as_array().unwrap().iter();
    let of_forms: Vec<_> = forms.map(|form| faults(document, form, value, at)).collect();
    match of_forms.iter().filter(|faults| faults.is_empty()).count() {
        // The intended form has the right type.
        0 => {
            let has_wrong_type = |faults: &Vec<String>| {
                let start = format!("{at}: ");
                faults.iter().any(|one| one.starts_with(&start) && one.contains("not of type"))
            };
            let by_type = |faults: &Vec<String>| (has_wrong_type(faults), faults.len());
            of_forms.into_iter().min_by_key(by_type).unwrap()
        }
        fitting if word == "oneOf" && fitting > 1 => {
            vec![format!("{at}: {fitting} forms of a oneOf fit {value}")]
        }
        _ => Vec::new(),
    }
}

/// The differences between the fields of an object and those that its schema has. A schema without any allows all.
fn of_fields(
    document: &Value,
    schema: &Map<String, Value>,
    value: &Value,
    at: &str,
) -> Vec<String> {
    let properties = schema["properties"].as_object().unwrap();
    let fields = value.as_object().into_iter().flatten().filter(|_| !properties.is_empty());
    let of_field = |(name, field): (&String, &Value)| match properties.get(name) {
        Some(schema) => faults(document, schema, field, &format!("{at}/{name}")),
        None => vec![format!("{at}: {name} is not in the document")],
    };
    fields.flat_map(of_field).collect()
}

#[test]
fn a_value_that_is_not_as_described_is_found() {
    let document = json!({"components": {"schemas": {"Job": {
        "type": "object", "required": ["id"],
        "properties": {"id": {"type": "string", "maxLength": 2}, "n": {"type": "integer", "maximum": 9}},
    }}}});
    let job = json!({"$ref": "#/components/schemas/Job"});
    let of = |schema: &Value, value: Value| faults(&document, schema, &value, "").len();
    let jobs = json!({"type": "array", "items": job, "minItems": 1});
    assert_eq!(of(&jobs, json!([{"n": "x", "more": 1}, {"id": "a"}])), 3);
    assert_eq!((of(&jobs, json!([])), of(&jobs, json!([{"id": "abc", "n": 10}]))), (1, 2));
    let moment = json!({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]});
    assert_eq!((of(&moment, json!(null)), of(&moment, json!("2026-12-01"))), (0, 1));
    assert_eq!(of(&moment, json!("2026-12-01T00:00:00Z")), 0);
    let one = json!({"oneOf": [job, {"type": "object"}]});
    assert_eq!((of(&one, json!({"id": "a"})), of(&one, json!({"x": 1}))), (1, 0));
    let map = json!({"type": "object", "additionalProperties": {"enum": [1, 2]}});
    assert_eq!((of(&map, json!({"a": 1})), of(&map, json!({"a": 1, "b": 3}))), (0, 1));
}
