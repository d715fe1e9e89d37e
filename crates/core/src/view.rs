//! Views: the objects of answers. [`view!`](crate::view!) declares a field once, and its sentence is what the struct and
//! the OpenAPI document say about it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A JSON Schema.
pub type Schema = Value;

/// A type of values in answers.
pub trait HasSchema {
    /// The schema of its values.
    fn schema() -> Schema;

    /// The schema of a field that is left out where it has nothing to say.
    fn present() -> Schema {
        Self::schema()
    }
}

/// An object of answers.
pub trait View {
    fn spec() -> ViewSpec;

    /// Whether a field of its own has this name.
    fn shows(name: &str) -> bool {
        Self::spec().fields.iter().any(|field| field.name == name)
    }
}

/// The description of a view, for documents.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewSpec {
    /// Its name in the OpenAPI document.
    pub schema: &'static str,
    /// Its own fields, in the order of its JSON.
    pub fields: Vec<ShownField>,
    /// The object of a body whose fields it shows among its own.
    pub settings: Option<&'static str>,
}

/// One field of a view.
#[derive(Clone, PartialEq, Debug)]
pub struct ShownField {
    pub name: &'static str,
    pub schema: Schema,
    /// What its value means: unit, range, default.
    pub sentence: &'static str,
    /// Whether each answer has it, even if only as null.
    pub always: bool,
}

/// The schema of this name.
pub fn named(schema: &str) -> Schema {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// The schema of any text.
pub fn text() -> Schema {
    json!({"type": "string"})
}

/// One of these words.
pub fn words(words: &[&str]) -> Schema {
    json!({"type": "string", "enum": words})
}

/// The schema of null.
pub fn nothing() -> Schema {
    json!({"type": "null"})
}

/// The schema of a list of such values.
pub fn items(of: Schema) -> Schema {
    json!({"type": "array", "items": of})
}

/// A value or null. Any JSON may be null anyway.
pub fn or_null(schema: Schema) -> Schema {
    if schema == json!({}) { schema } else { json!({"anyOf": [schema, nothing()]}) }
}

/// Gives types a schema: this one, or that of their name, which the server makes.
#[doc(hidden)]
#[macro_export]
macro_rules! schemas {
    ($($type:ident),+) => {
        $($crate::schemas!($type = $crate::view::named(stringify!($type)));)+
    };
    ($($type:ty),+ = $schema:expr) => {
        $(impl $crate::view::HasSchema for $type {
            fn schema() -> $crate::view::Schema {
                $schema
            }
        })+
    };
}

schemas!(bool = json!({"type": "boolean"}));
schemas!(i8, u16, u32, u64, usize = json!({"type": "integer"}));
schemas!(String, &str, Cow<'_, str> = text());
schemas!(Map<String, Value> = json!({"type": "object"}));

impl<K, V> HasSchema for BTreeMap<K, V> {
    fn schema() -> Schema {
        Map::<String, Value>::schema()
    }
}

impl<T: HasSchema> HasSchema for Vec<T> {
    fn schema() -> Schema {
        items(T::schema())
    }
}

impl<T: HasSchema> HasSchema for Box<T> {
    fn schema() -> Schema {
        T::schema()
    }
}

impl<T: HasSchema> HasSchema for Option<T> {
    fn schema() -> Schema {
        or_null(T::schema())
    }
    /// `None` is left out, and not shown as null.
    fn present() -> Schema {
        T::schema()
    }
}

/// Declares structs that answers show. Example:
///
/// ```text
/// view! {
///     /// A queue as the contract shows it.
///     #[derive(Clone, Debug, Serialize)]
///     pub struct QueueView as "Queue" {
///         /// Until when it is paused; null if without end, or not paused.
///         pub paused_until: Option<Moment>,
///     }
/// }
/// ```
///
/// The doc comment of a field stands in the OpenAPI document too, so it speaks of JSON: null, not `None`. `as` names the
/// schema of a struct that is not called like it, and gives a field a schema that says more than its type. Serde's
/// attributes decide the rest: a field with `skip_serializing_if` may be absent, one with `skip` always is, and `flatten`
/// shows the fields of a settings object, whose schema is called like its type.
#[doc(hidden)]
#[macro_export]
macro_rules! view {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $view:ident $(<$life:lifetime>)? $(as $schema:literal)? {
            $(
                $(#[doc = $sentence:literal])*
                $(#[serde($($serde:tt)*)])?
                $field_vis:vis $field:ident: $type:ty $(as $kind:expr)?,
            )*
        }
    )*) => {$(
        $(#[$about])*
        $vis struct $view $(<$life>)? {
            $($(#[doc = $sentence])* $(#[serde($($serde)*)])? $field_vis $field: $type,)*
        }
        impl $(<$life>)? $crate::view::View for $view $(<$life>)? {
            fn spec() -> $crate::view::ViewSpec {
                let schema = $crate::view!(@last stringify!($view) $(, $schema)?);
                let mut spec = $crate::view::ViewSpec { schema, fields: Vec::new(), settings: None };
                $($crate::view! {
                    @field spec stringify!($field), concat!($($sentence),*), [$type] [$($kind)?] $($($serde)*)?
                })*
                spec
            }
        }
        impl $(<$life>)? $crate::view::HasSchema for $view $(<$life>)? {
            fn schema() -> $crate::view::Schema {
                $crate::view::named($crate::view!(@last stringify!($view) $(, $schema)?))
            }
        }
    )*};

    (@last $one:expr) => { $one };
    (@last $one:expr, $other:expr) => { $other };

    // The attribute of serde is read word by word.
    (@field $spec:ident $name:expr, $sentence:expr, [$type:ty] [] skip) => {};
    (@field $spec:ident $name:expr, $sentence:expr, [$type:ty] [] flatten) => {
        $spec.settings = Some(stringify!($type));
    };
    (@field $spec:ident $name:expr, $sentence:expr, [$type:ty] $kind:tt skip_serializing_if $($rest:tt)*) => {
        $spec.push($name, $sentence, $crate::view!(@kind present $type, $kind), false);
    };
    (@field $spec:ident $name:expr, $sentence:expr, $type:tt $kind:tt $word:tt $($rest:tt)*) => {
        $crate::view! { @field $spec $name, $sentence, $type $kind $($rest)* }
    };
    (@field $spec:ident $name:expr, $sentence:expr, [$type:ty] $kind:tt) => {
        $spec.push($name, $sentence, $crate::view!(@kind schema $type, $kind), true);
    };
    (@kind $how:ident $type:ty, []) => { <$type as $crate::view::HasSchema>::$how() };
    (@kind $how:ident $type:ty, [$kind:expr]) => { $kind };
}

impl ViewSpec {
    /// Adds a field. A raw identifier is the name with a mark, and each line of a doc comment begins with a blank.
    #[doc(hidden)]
    pub fn push(
        &mut self,
        name: &'static str,
        sentence: &'static str,
        schema: Schema,
        always: bool,
    ) {
        let (name, sentence) = (name.trim_start_matches("r#"), sentence.trim_start());
        self.fields.push(ShownField { name, schema, sentence, always });
    }
}
