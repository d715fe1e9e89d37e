//! The reference of the HTTP API is made from the server's own description, `/openapi.json`, and agrees with it.
//! `TENURE_WRITE_DOCS=1 cargo test -p tenure-server --test it http_page` writes the page again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::wire::Server;
use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/http.md");

const HEAD: &str = "# HTTP API

This page is made from `/openapi.json`, which every server answers, so it has every route and every field.
[The guide](../guides/http.md) shows a worker over HTTP, and [the conventions](README.md#conventions-of-these-pages) hold
for all calls: durations are strings such as `\"1m30s\"`, moments are RFC 3339, an unknown field is refused.

- A request with a body says `Content-Type: application/json`, or `application/x-ndjson` where that is named.
- `Authorization: Bearer TOKEN` is needed where the server has a token, except for `/healthz` and `/readyz`. A token with
  [scopes](tokens.md) needs the one that stands below a route.
- The header `Tenure-Namespace` names the namespace (`default`).
- Every other answer than those listed is a [problem](#type-problem) with a `code`: [all codes](../errors/README.md).
- `HEAD` answers what `GET` would, without its body.
- An *optional* field may be absent, from a body or from an answer. All other fields are always there, if only as `null`.
";

#[test]
fn the_page_of_the_http_api_is_up_to_date() {
    let made = page(&Server::start().get("/openapi.json").good());
    if std::env::var("TENURE_WRITE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::write(PAGE, &made).unwrap();
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference/http.md differs from /openapi.json; write it anew: \
         TENURE_WRITE_DOCS=1 cargo test -p tenure-server --test it http_page"
    );
}

fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    let mut subjects: BTreeMap<&str, Vec<(&str, &str, &Value)>> = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            subjects.entry(subject(path)).or_default().push((path, method, operation));
        }
    }
    for (subject, routes) in subjects {
        let mut title = subject.to_owned();
        title[..1].make_ascii_uppercase();
        write!(page, "\n## {title}\n").unwrap();
        for (path, method, operation) in routes {
            route(&mut page, path, method, operation);
        }
    }
    page += "\n## Types\n";
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        one_type(&mut page, name, schema);
    }
    page
}

/// The subject of a route: the part of its path behind the version.
fn subject(path: &str) -> &str {
    match path.split('/').nth(2) {
        Some(part) => part,
        None => "server",
    }
}

fn route(page: &mut String, path: &str, method: &str, operation: &Value) {
    let method = method.to_ascii_uppercase();
    write!(page, "\n### {method} {path}\n\n{}.\n", text(&operation["summary"])).unwrap();
    match &operation["x-scope"] {
        Value::String(scope) => {
            write!(page, "\nScope: [`{scope}`](tokens.md#scopes).\n").unwrap();
        }
        Value::Array(scopes) => {
            let scopes: Vec<_> = scopes.iter().map(|scope| format!("`{}`", text(scope))).collect();
            let (last, others) = scopes.split_last().unwrap();
            let others = others.join(", ");
            write!(page, "\nScopes: [{others} and {last}](tokens.md#scopes)").unwrap();
            assert_eq!(operation["x-namespaces"], "*");
            page.push_str(", in all namespaces (`*`).\n");
        }
        _ => {}
    }
    let mut rows = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        // The namespace is described once, at the top.
        if parameter["in"] == "query" {
            rows.push((text(&parameter["name"]), parameter));
        }
    }
    if !rows.is_empty() {
        page.push_str("\n| query | type | meaning |\n| --- | --- | --- |\n");
        for (name, parameter) in rows {
            let said = said(parameter);
            writeln!(page, "| `{name}` | {} | {said} |", kind(&parameter["schema"])).unwrap();
        }
    }
    let body = &operation["requestBody"];
    if let Some(content) = body["content"].as_object() {
        let optional = if body["required"] == true { "" } else { ", which may be left out" };
        let lines = if content.contains_key("application/x-ndjson") { ", or NDJSON" } else { "" };
        let schema = kind(&content["application/json"]["schema"]);
        write!(page, "\nBody: {schema}{lines}{optional}.\n").unwrap();
    }
    let mut answers = Vec::new();
    for (status, answer) in operation["responses"].as_object().unwrap() {
        if status == "default" {
            continue;
        }
        let what = match answer["content"].as_object() {
            Some(content) => {
                let json = content.get("application/json").map(|json| kind(&json["schema"]));
                let others = content.keys().filter(|other| *other != "application/json");
                let others = others.map(|other| format!("`{other}`"));
                json.into_iter().chain(others).collect::<Vec<_>>().join(", or ")
            }
            None => "without a body".to_owned(),
        };
        answers.push(format!("{status} {what}"));
    }
    write!(page, "\nAnswers: {}.\n", answers.join("; ")).unwrap();
}

fn one_type(page: &mut String, name: &str, schema: &Value) {
    // Subjects and types share names, and both are anchors.
    write!(page, "\n### Type {name}\n").unwrap();
    if let Some(said) = schema["description"].as_str() {
        write!(page, "\n{said}\n").unwrap();
    }
    if schema["properties"].is_object() {
        fields(page, schema);
        return;
    }
    let kinds = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    match kinds {
        Some(kinds) => {
            let (objects, plain): (Vec<&Value>, Vec<&Value>) =
                kinds.iter().partition(|each| each["properties"].is_object());
            if !plain.is_empty() {
                let plain: Vec<String> = plain.into_iter().map(kind).collect();
                let or = if objects.is_empty() { "" } else { ", or an object" };
                write!(page, "\n{}{or}\n", plain.join(", or ")).unwrap();
            }
            objects.into_iter().for_each(|each| fields(page, each));
        }
        None => write!(page, "\n{}\n", kind(schema)).unwrap(),
    }
}

fn fields(page: &mut String, schema: &Value) {
    if let Some(title) = schema["title"].as_str() {
        write!(page, "\n`{title}`:\n").unwrap();
    }
    page.push_str("\n| field | type | meaning |\n| --- | --- | --- |\n");
    for (name, field) in schema["properties"].as_object().unwrap() {
        let required =
            schema["required"].as_array().is_some_and(|all| all.contains(&name.as_str().into()));
        let optional = if required { "" } else { ", optional" };
        writeln!(page, "| `{name}` | {}{optional} | {} |", kind(field), said(field)).unwrap();
    }
}

/// A type in a person's words, with a link where it has a name.
fn kind(schema: &Value) -> String {
    if let Some(named) = schema["$ref"].as_str() {
        let name = named.rsplit('/').next().unwrap();
        return format!("[{name}](#type-{})", name.to_ascii_lowercase());
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", text(constant));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(kinds) = schema[choice].as_array() {
            let kinds: Vec<String> = kinds.iter().map(kind).collect();
            return kinds.join(" or ");
        }
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("string") if schema["format"] == "date-time" => "moment".to_owned(),
        Some("string") if schema["examples"].is_array() => "duration".to_owned(),
        Some("string") => match schema["maxLength"].as_u64() {
            Some(most) => format!("text, at most {most} bytes"),
            None => "text".to_owned(),
        },
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("null") => "null".to_owned(),
        Some("object") => "object".to_owned(),
        _ => "any JSON".to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A description, for a cell of a table.
fn said(described: &Value) -> String {
    text(&described["description"]).replace('|', "\\|")
}
