//! Reads the operations of a server from its OpenAPI document.

use tenure_console::exit::Failure;

use serde_json::Value;

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The HTTP method in upper case.
    pub method: String,
    /// The path, with names in braces.
    pub path: String,
    /// Names of query parameters.
    pub query: Vec<String>,
    /// The schema of its body, if it takes one.
    pub body: Option<Value>,
    /// Whether the body may be NDJSON.
    pub lines: bool,
}

/// The operations and schemas of an OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document {
    /// All operations, in the order of the document.
    pub operations: Vec<Operation>,
    schemas: Value,
}

impl Document {
    pub fn read(document: &Value) -> Result<Self, Failure> {
        let mut operations = Vec::new();
        let paths = document["paths"].as_object();
        for (path, methods) in paths.into_iter().flatten() {
            for (method, said) in methods.as_object().into_iter().flatten() {
                let content = &said["requestBody"]["content"];
                let body = content.get("application/json").map(|json| json["schema"].clone());
                let parameters = said["parameters"].as_array().into_iter().flatten();
                let of_query = parameters.filter(|one| one["in"] == "query");
                let names = of_query.filter_map(|one| Some(one["name"].as_str()?.to_owned()));
                operations.push(Operation {
                    method: method.to_ascii_uppercase(),
                    path: path.clone(),
                    query: names.collect(),
                    body,
                    lines: content.get("application/x-ndjson").is_some(),
                });
            }
        }
        if operations.is_empty() {
            return Err(Failure::new(
                tenure_console::exit::NO,
                "the OpenAPI document names no operations",
            ));
        }
        Ok(Document { operations, schemas: document["components"]["schemas"].clone() })
    }

    /// The schema itself, or the one that it refers to.
    pub fn resolved<'d>(&'d self, schema: &'d Value) -> &'d Value {
        let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else {
            return schema;
        };
        self.schemas.get(name).unwrap_or(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_our_own_document_is_read() {
        let document = Document::read(tenure_server::document()).unwrap();
        let push = document.operations.iter().find(|o| o.method == "POST" && o.path == "/v1/jobs");
        let push = push.unwrap();
        assert!(push.lines && push.body.is_some());
        let schema = document.resolved(push.body.as_ref().unwrap());
        assert!(schema["oneOf"].is_array(), "{schema}");
        let list = document.operations.iter().find(|o| o.method == "GET" && o.path == "/v1/jobs");
        assert!(list.unwrap().query.iter().any(|name| name == "cursor"));
        assert!(document.operations.len() > 40);
    }
}
