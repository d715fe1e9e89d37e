//! Makes `/openapi.json` from the table of routes, so that it describes all of them and nothing
//! else.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use tenure_core::access::{Scope, WHOLE_STORE};
use tenure_core::decode::BodySpec;
use tenure_core::requests::{Operation, ReadEvents};

use crate::examples;
use crate::routes::{self, Access, LineItem, Route};
use crate::schemas;

/// The document. Made once.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(make)
}

fn make() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tenure",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Hands out scarce work: jobs, slots under a cap, calls under a rate, \
                            accounts, locks. HEAD is answered wherever GET is, without the body.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": {
                "description": "The answer is no: `code` says why, `hint` what to do next.",
                "content": {"application/problem+json": {"schema": schema("Problem")}},
            }},
            "parameters": {"Namespace": {
                "name": "Tenure-Namespace",
                "in": "header",
                "description": "The namespace; \"default\" without it.",
                "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"},
            }},
        },
        // A server without a token asks for none.
        "security": [{"token": []}, {}],
    })
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// JSON of a schema, with an example if there is one.
fn json_of(name: &str, operation: &str, part: &str) -> Value {
    let mut content = json!({"schema": schema(name)});
    if let Some(example) = examples::of(operation, part) {
        content["example"] = example.clone();
    }
    content
}

fn operation(route: &Route) -> Value {
    let mut answers: Map<String, Value> = Map::new();
    for (status, name) in route.answers {
        let mut answer = json!({"description": describe(*status)});
        if name.contains('/') {
            // A media type, where the answer is not JSON.
            answer["content"] = json!({*name: {"schema": {"type": "string"}}});
        } else if !name.is_empty() {
            let content = json_of(name, route.name, &status.to_string());
            answer["content"] = json!({"application/json": content});
            if route.name == ReadEvents::NAME {
                answer["content"]["text/event-stream"] = json!({});
            }
            if route.lines == Some(LineItem::Job) {
                answer["content"]["application/x-ndjson"] = json!({});
            }
        }
        answers.insert(status.to_string(), answer);
    }
    answers.insert("default".to_owned(), json!({"$ref": "#/components/responses/Problem"}));
    let mut parameters: Vec<Value> = route
        .names()
        .map(|name| {
            let kind = json!({"type": "string"});
            json!({"name": name, "in": "path", "required": true, "description": of_path(name), "schema": kind})
        })
        .chain(route.query.iter().flat_map(|parameters| parameters()).map(|of| {
            let kind = schemas::kind(&of.kind);
            json!({"name": of.name, "in": "query", "description": of.sentence, "schema": kind})
        }))
        .collect();
    if route.path.starts_with("/v1/") {
        parameters.push(json!({"$ref": "#/components/parameters/Namespace"}));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": answers,
    });
    if let Some(name) = route.body.schema() {
        let mut content = json!({"application/json": json_of(name, route.name, "body")});
        if route.lines.is_some() {
            content["application/x-ndjson"] = json!({});
        }
        let required = matches!(route.body, BodySpec::Required(_));
        operation["requestBody"] = json!({"required": required, "content": content});
    }
    match route.access() {
        Access::Open => operation["security"] = json!([]),
        Access::AnyToken => {}
        Access::Server(scope) | Access::Namespace(scope) => {
            operation["x-scope"] = json!(scope.as_str());
        }
        Access::WholeStore => {
            operation["x-scope"] = json!(WHOLE_STORE.map(Scope::as_str));
            operation["x-namespaces"] = json!("*");
        }
    }
    operation
}

/// The meaning of a name in a path.
fn of_path(name: &str) -> &'static str {
    match name {
        "id" => {
            "An id, percent-encoded. key:KEY stands for the job that holds the unique key KEY now."
        }
        "flow" => "The name of the flow, percent-encoded.",
        _ => "The name, percent-encoded.",
    }
}

fn describe(status: u16) -> &'static str {
    match status {
        201 => "Something new is there",
        204 => "It is gone",
        503 => "Not now",
        _ => "Answered",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Each property and each parameter of the document, with its place and its description.
    fn described(value: &Value, at: &str, into: &mut Vec<(String, Option<String>)>) {
        let said = |of: &Value| of["description"].as_str().map(str::to_owned);
        match value {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get("properties") {
                    let all = properties.iter();
                    into.extend(all.map(|(name, of)| (format!("{at}/{name}"), said(of))));
                }
                if let Some(Value::Array(parameters)) = fields.get("parameters") {
                    let own = parameters.iter().filter(|of| of.get("$ref").is_none());
                    into.extend(own.map(|of| (format!("{at}?{}", of["name"]), said(of))));
                }
                fields.iter().for_each(|(name, of)| described(of, &format!("{at}/{name}"), into));
            }
            Value::Array(items) => items.iter().for_each(|of| described(of, at, into)),
            _ => {}
        }
    }

    #[test]
    fn every_property_and_parameter_says_what_it_means() {
        let mut all = Vec::new();
        described(document(), "", &mut all);
        assert!(all.len() > 600, "{}", all.len());
        for (at, said) in all {
            let said = said.unwrap_or_else(|| panic!("{at} has no description"));
            assert!(said.split_whitespace().count() >= 3, "{at}: {said:?}");
            assert!(said.ends_with('.'), "{at}: {said:?} is no sentence");
        }
    }

    #[test]
    fn a_route_says_the_scopes_that_its_callers_need() {
        for route in routes::all() {
            let operation = &document()["paths"][route.path][route.method.as_str().to_lowercase()];
            let scopes = match route.access() {
                Access::Open | Access::AnyToken => Value::Null,
                Access::Server(scope) | Access::Namespace(scope) => json!(scope.as_str()),
                Access::WholeStore => json!(["read", "work", "admin"]),
            };
            assert_eq!(operation["x-scope"], scopes, "{}", route.name);
        }
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        fn names(value: &Value, into: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(name)) = fields.get("$ref") {
                        into.insert(name.clone());
                    }
                    fields.values().for_each(|value| names(value, into));
                }
                Value::Array(items) => items.iter().for_each(|value| names(value, into)),
                _ => {}
            }
        }
        let mut named = BTreeSet::new();
        names(document(), &mut named);
        for name in named {
            let pointer = name.strip_prefix('#').unwrap();
            assert!(document().pointer(pointer).is_some(), "{name}");
        }
    }
}
