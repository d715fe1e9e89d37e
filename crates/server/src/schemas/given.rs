//! Schemas of bodies, and of answers with the same fields, out of the table of fields.

use serde_json::{Map, Value, json};
use tenure_core::decode::{FieldSpec, ObjectSpec, Presence, ValueKind, Variant, objects};
use tenure_core::time::{Moment, Span};
use tenure_core::view::{HasSchema, Schema, ShownField, named, or_null, text, words};

use super::object;

/// Objects that answers show, too: each has a twin with this prefix, in which all fields are required but those that
/// an answer may lack.
const SHARED: [&str; 4] = ["Unique", "Retry", "Backoff", "Rate"];
/// Fields of objects that an answer may lack.
const LACKING: &[(&str, &[&str])] = &[
    ("Unique", &["for", "within"]),
    ("Retry", &["max_snoozes"]),
    ("Backoff", &["base", "max", "delays"]),
    ("Gauge", &["url", "count", "scrapyd", "project"]),
];
const SHOWN_PREFIX: &str = "Shown";

/// The name of a schema in an answer.
fn shown_name(schema: &str) -> String {
    if SHARED.contains(&schema) { format!("{SHOWN_PREFIX}{schema}") } else { schema.to_owned() }
}

/// The schemas of all bodies, and the twins of those that answers share.
pub(super) fn add(all: &mut Map<String, Value>) {
    for object in objects() {
        let schema = if object.variants.is_empty() {
            given(&object.fields, &[], all)
        } else {
            one_of(&object.fields, object.variants, all)
        };
        all.insert(object.schema.to_owned(), schema);
    }
    all.extend(SHARED.map(|schema| (shown_name(schema), object(shown_fields(schema)))));
}

/// The patch of an object: each field may be absent, and null for its default; a required one has no default.
pub(super) fn patch(schema: &str, all: &mut Map<String, Value>) -> Schema {
    let mut object = spec(schema);
    for field in &mut object.fields {
        let has_default = field.presence != Presence::Required;
        field.presence = if has_default { Presence::Nullable } else { Presence::Optional };
    }
    given(&object.fields, &[], all)
}

/// An object of a set: this field is required in it.
pub(super) fn item(schema: &str, required: &'static str, all: &mut Map<String, Value>) -> Schema {
    let mut object = spec(schema);
    let keys = object.fields.iter_mut().filter(|field| field.name == required);
    keys.for_each(|field| field.presence = Presence::Required);
    one_of(&object.fields, object.variants, all)
}

/// The fields of an object as an answer has them.
pub(super) fn shown_fields(schema: &str) -> Vec<ShownField> {
    let field = |of: &FieldSpec| {
        let lacks = LACKING.iter().any(|(name, all)| *name == schema && all.contains(&of.name));
        field(of, !lacks, &shown_name, &mut Map::new())
    };
    spec(schema).fields.iter().map(field).collect()
}

fn spec(schema: &str) -> ObjectSpec {
    let named = objects().into_iter().find(|object| object.schema == schema);
    named.unwrap_or_else(|| panic!("no object of the table has the schema {schema}"))
}

/// An object in a body: these fields are required, beside those of the table.
fn given(fields: &[FieldSpec], required: &[&str], all: &mut Map<String, Value>) -> Schema {
    let mut field = |of: &FieldSpec| {
        let is_required = of.presence == Presence::Required || required.contains(&of.name);
        field(of, is_required, &str::to_owned, all)
    };
    object(fields.iter().map(&mut field).collect())
}

fn field(
    of: &FieldSpec,
    always: bool,
    name: &dyn Fn(&str) -> String,
    all: &mut Map<String, Value>,
) -> ShownField {
    let kind = kind(&of.kind, name, all);
    let schema = if of.presence == Presence::Nullable { or_null(kind) } else { kind };
    ShownField { name: of.name, schema, sentence: of.sentence, always }
}

/// One of several variants of an object: each has its own fields, and those that all variants share.
fn one_of(fields: &[FieldSpec], variants: &[Variant], all: &mut Map<String, Value>) -> Schema {
    let mut objects = Vec::new();
    for variant in variants {
        let others = variants.iter().filter(|other| other.name != variant.name);
        let foreign: Vec<&str> = others.flat_map(|other| other.own).copied().collect();
        let is_own = |field: &&FieldSpec| {
            variant.own.contains(&field.name) || !foreign.contains(&field.name)
        };
        let own: Vec<FieldSpec> = fields.iter().filter(is_own).cloned().collect();
        let mut object = given(&own, variant.required, all);
        object["title"] = variant.name.into();
        if let Some((field, word)) = variant.says {
            let sentence = object["properties"][field]["description"].take();
            object["properties"][field] =
                json!({"type": "string", "const": word, "description": sentence});
        }
        objects.push(object);
    }
    json!({"oneOf": objects})
}

/// The schema of a kind that is not a part of an object.
pub(crate) fn plain(of: &ValueKind) -> Schema {
    kind(of, &str::to_owned, &mut Map::new())
}

/// The schema of a kind. `name` gives the schema of an object its name; kinds with a schema of their own go to `all`.
fn kind(kind: &ValueKind, name: &dyn Fn(&str) -> String, all: &mut Map<String, Value>) -> Schema {
    match kind {
        ValueKind::Text(None) => text(),
        ValueKind::Text(Some(most)) => json!({"type": "string", "maxLength": most}),
        ValueKind::Whole(bounds) => {
            json!({"type": "integer", "minimum": bounds.start(), "maximum": bounds.end()})
        }
        ValueKind::Duration => Span::schema(),
        ValueKind::Moment => Moment::schema(),
        ValueKind::Boolean => bool::schema(),
        ValueKind::Any => json!({}),
        ValueKind::Map(of) => {
            json!({"type": "object", "additionalProperties": self::kind(of, name, all)})
        }
        ValueKind::Words(known) => words(known),
        ValueKind::List(of, items) => {
            let mut list = json!({"type": "array", "items": self::kind(of, name, all)});
            if *items.start() > 0 {
                list["minItems"] = json!(items.start());
            }
            list["maxItems"] = json!(items.end());
            list
        }
        ValueKind::Object(schema) => named(&name(schema)),
        ValueKind::OneOf(kinds) => {
            json!({"oneOf": kinds.iter().map(|kind| self::kind(kind, name, all)).collect::<Vec<_>>()})
        }
        ValueKind::Alias(schema, of) => {
            let of = self::kind(of, name, all);
            all.insert((*schema).to_owned(), of);
            named(schema)
        }
    }
}
