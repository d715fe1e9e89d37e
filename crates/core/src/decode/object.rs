//! The table of fields. [`object!`] declares an object of a body: each field stands once, with its name, type, form,
//! presence and meaning. The reader, the check of requests that a program made, the body that a client sends and the
//! OpenAPI document come from it.

use std::marker::PhantomData;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::fields::{Fields, Value, document, is_empty};
use super::forms::{Form, ValueKind, Written};
use crate::at::At;
use crate::refusal::Refusal;
use crate::requests::Patch;

/// A field: its name in JSON, and the form of its values.
pub(crate) struct ObjectField<T, F> {
    pub name: &'static str,
    form: F,
    values: PhantomData<fn() -> T>,
}

impl<T, F: Form<T>> ObjectField<T, F> {
    pub(crate) const fn new(name: &'static str, form: F) -> Self {
        ObjectField { name, form, values: PhantomData }
    }
    /// The form of its values.
    pub(crate) fn form(&self) -> &F {
        &self.form
    }
    /// Refuses a value that a reader would refuse, in the object at this place.
    pub(crate) fn check(&self, value: &T, of: &At<'_>) -> Result<(), Refusal> {
        self.form.check(value, &At::Member(of, self.name))
    }
    /// Refuses the value of a patch that a reader would refuse.
    pub(crate) fn check_patch(&self, patch: &Patch<T>, of: &At<'_>) -> Result<(), Refusal> {
        patch.each(|value| self.check(value, of))
    }
    /// The same of a value that may be absent.
    pub(crate) fn check_given(&self, value: &Option<T>, of: &At<'_>) -> Result<(), Refusal> {
        value.as_ref().map_or(Ok(()), |value| self.check(value, of))
    }
    /// Writes it with its value.
    pub(crate) fn put<M: SerializeMap>(&self, value: &T, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(self.name, &Written(value, &self.form))
    }
    /// Writes it with its value, unless that is absent.
    pub(crate) fn put_given<M: SerializeMap>(
        &self,
        value: &Option<T>,
        map: &mut M,
    ) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| self.put(value, map))
    }
    /// Writes it with its value, unless that is the default.
    pub(crate) fn put_unless_default<M: SerializeMap>(
        &self,
        value: &T,
        map: &mut M,
    ) -> Result<(), M::Error>
    where
        T: Default + PartialEq,
    {
        if *value == T::default() { Ok(()) } else { self.put(value, map) }
    }
    /// Writes it as a patch names it: a value, `null`, or not at all.
    pub(crate) fn put_patch<M: SerializeMap>(
        &self,
        patch: &Patch<T>,
        map: &mut M,
    ) -> Result<(), M::Error> {
        match patch {
            Patch::Keep => Ok(()),
            Patch::Reset => map.serialize_entry(self.name, &()),
            Patch::Set(value) => self.put(value, map),
        }
    }
}

impl<const N: usize> Fields<'_, '_, N> {
    /// Reads a field of the table; `None` if it is absent.
    pub fn read<T, F: Form<T>>(&self, field: &ObjectField<T, F>) -> Result<Option<T>, Refusal> {
        self.get(field.name).map(|value| field.form().read(value)).transpose()
    }

    /// Reads a required field of the table; `example` is a right one.
    pub fn read_required<T, F: Form<T>>(
        &self,
        field: &ObjectField<T, F>,
        example: &'static str,
    ) -> Result<T, Refusal> {
        field.form().read(self.required(field.name, example)?)
    }

    /// Reads a field of the table in a patch: absent, `null`, or a value.
    pub fn read_patch<T, F: Form<T>>(
        &self,
        field: &ObjectField<T, F>,
    ) -> Result<Patch<T>, Refusal> {
        match self.raw(field.name) {
            None => Ok(Patch::Keep),
            Some(value) if value.node.is_null() => Ok(Patch::Reset),
            Some(value) => Ok(Patch::Set(field.form().read(value)?)),
        }
    }
}

/// A part of an object: one value that takes several fields, such as a moment that is given as `for` or as `until`.
pub(crate) trait Part<T> {
    /// Reads it from the fields of an object.
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<T, Refusal>;
    /// Refuses a value that a program made and a reader would refuse.
    fn check(&self, value: &T, of: &At<'_>) -> Result<(), Refusal>;
    /// Writes its fields.
    fn write<M: SerializeMap>(&self, value: &T, map: &mut M) -> Result<(), M::Error>;
}

/// A value that is read from an object. Its keys are members that the object does not name, such as the name in a path.
pub(crate) trait Call: Sized {
    type Keys;
    /// The schema of its object.
    const SCHEMA: &'static str;
    /// Reads it from the fields of its object, once that is open.
    fn of_fields<const N: usize>(
        keys: Self::Keys,
        fields: &Fields<'_, '_, N>,
    ) -> Result<Self, Refusal>;
    /// Reads it from its object.
    fn of_value(keys: Self::Keys, value: Value<'_, '_>) -> Result<Self, Refusal>;
    /// Reads it from a body, which is required.
    fn of_body(keys: Self::Keys, body: &[u8]) -> Result<Self, Refusal> {
        Self::of_value(keys, Value::body(&document(body)?))
    }
    /// Reads it from a body; none means `{}`.
    fn of_optional_body(keys: Self::Keys, body: &[u8]) -> Result<Self, Refusal> {
        Self::of_body(keys, if is_empty(body) { b"{}" } else { body })
    }
}

/// Requests whose bounds are those of their bodies.
macro_rules! bounded_bodies {
    ($($request:ident)*) => {
        $(impl $crate::bounded::Bounded for $request {
            fn within_bounds(&self) -> Result<(), $crate::refusal::Refusal> {
                $crate::decode::object::SentBody::check_body(self, &$crate::at::At::Body)
            }
        })*
    };
}

/// A value that is the body of a request, or an item of one.
pub trait SentBody {
    /// Refuses a value beyond the bounds of the contract; the pointer counts from `at`.
    ///
    /// # Errors
    /// As a server refuses the same value in a body.
    #[doc(hidden)]
    fn check_body(&self, at: &At<'_>) -> Result<(), Refusal>;
    /// Writes its fields as a server reads them. Those at their defaults are left out where absence means the same.
    ///
    /// # Errors
    /// That of the serializer.
    fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
    /// Writes it as an object.
    ///
    /// # Errors
    /// That of the serializer.
    fn write_body<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.write_members(&mut map)?;
        map.end()
    }
}

/// A member whose own fields stand in the object itself.
pub(crate) struct Flat;

impl<T: Call<Keys = ()> + SentBody> Part<T> for Flat {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<T, Refusal> {
        T::of_fields((), fields)
    }
    fn check(&self, value: &T, of: &At<'_>) -> Result<(), Refusal> {
        value.check_body(of)
    }
    fn write<M: SerializeMap>(&self, value: &T, map: &mut M) -> Result<(), M::Error> {
        value.write_members(map)
    }
}

/// A body as a value that can be serialized.
#[derive(Debug)]
pub struct AsBody<'a, T: ?Sized>(pub &'a T);

impl<T: SentBody> Serialize for AsBody<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write_body(to)
    }
}

impl<T: SentBody> Serialize for AsBody<'_, [T]> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(AsBody))
    }
}

/// Whether a body has a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Always.
    Required,
    /// It may lack it.
    Optional,
    /// It may lack it or say `null`, which both have a meaning of their own in answers, too.
    Nullable,
}

/// One field of an object, for documents.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldSpec {
    /// Its name in JSON.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: ValueKind,
    pub presence: Presence,
    /// What it means: unit, range, default.
    pub sentence: &'static str,
}

/// One object of a body, for documents.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectSpec {
    /// Its name in the OpenAPI document.
    pub schema: &'static str,
    pub fields: Vec<FieldSpec>,
    /// Its variants, if it comes in several: the fields of one exclude those of the others.
    pub variants: &'static [Variant],
}

/// An object that documents describe.
pub(crate) trait Described {
    fn spec() -> ObjectSpec;
}

/// One of several variants of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name, for generators.
    pub name: &'static str,
    /// Fields that not every variant has.
    pub own: &'static [&'static str],
    /// Fields that this variant must have, beside those that every variant must have.
    pub required: &'static [&'static str],
    /// The field by which the variant is recognised, and its value there.
    pub says: Option<(&'static str, &'static str)>,
}

macro_rules! json_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $json:literal) => {
        $json
    };
}

macro_rules! presence {
    (required) => {
        $crate::decode::object::Presence::Required
    };
    (nullable) => {
        $crate::decode::object::Presence::Nullable
    };
    ($other:ident) => {
        $crate::decode::object::Presence::Optional
    };
}

/// Reads a field by its presence: `required` with a right example, `optional` and `nullable` as an `Option`, `default`
/// as the default of its type, `or` as a value of its own, and `patch` as a [`Patch`].
macro_rules! read_field {
    ($fields:ident, $field:expr, patch) => {
        $fields.read_patch(&$field)?
    };
    ($fields:ident, $field:expr, required $form:expr) => {
        $fields.read_required(&$field, $form)?
    };
    ($fields:ident, $field:expr, optional) => {
        $fields.read(&$field)?
    };
    ($fields:ident, $field:expr, nullable) => {
        $fields.read(&$field)?
    };
    ($fields:ident, $field:expr, default) => {
        $fields.read(&$field)?.unwrap_or_default()
    };
    ($fields:ident, $field:expr, or $value:expr) => {
        match $fields.read(&$field)? {
            Some(value) => value,
            None => $value,
        }
    };
}

macro_rules! check_field {
    ($at:ident, $field:expr, $value:expr, patch) => {
        $field.check_patch(&$value, $at)?;
    };
    ($at:ident, $field:expr, $value:expr, optional) => {
        $field.check_given(&$value, $at)?;
    };
    ($at:ident, $field:expr, $value:expr, nullable) => {
        $field.check_given(&$value, $at)?;
    };
    ($at:ident, $field:expr, $value:expr, $other:ident) => {
        $field.check(&$value, $at)?;
    };
}

macro_rules! put_field {
    ($map:ident, $field:expr, $value:expr, patch) => {
        $field.put_patch(&$value, $map)?;
    };
    ($map:ident, $field:expr, $value:expr, optional) => {
        $field.put_given(&$value, $map)?;
    };
    ($map:ident, $field:expr, $value:expr, nullable) => {
        $field.put_given(&$value, $map)?;
    };
    ($map:ident, $field:expr, $value:expr, default) => {
        $field.put_unless_default(&$value, $map)?;
    };
    ($map:ident, $field:expr, $value:expr, $other:ident) => {
        $field.put(&$value, $map)?;
    };
}

/// Declares an object of a body. Example:
///
/// ```text
/// object! {
///     RateFields "a rate" "Rate"
///     whole Rate;
///     fields {
///         count: u32 = Whole(COUNT), required "\"count\": 10", "How many tokens there are in each period.";
///         per: Span = Duration(Spans::SOME), required "\"per\": \"1s\"", "The period, more than 0s.";
///     }
/// }
/// ```
///
/// Behind its name stand the words for it in a refusal and the name of its schema. `answered` has the views that show
/// fields that no caller may set, and names of further ones. `whole` names the type of which each field is a member
/// (members with a fixed value stand in braces), `call` one with more members, which the caller of its reader fills in,
/// and `patch` one in which each field is a [`Patch`]; `as` names its schema, if that is another one. `rule` is a check
/// of several fields together. `variants` lists [`Variant`]s for documents. A `flat` member is a type whose fields
/// stand in the object itself, and a `part` is another member that takes several fields. `others` are fields of no
/// member. `as` gives a field another name in JSON.
macro_rules! object {
    (
        $(#[$doc:meta])*
        $name:ident $what:literal $schema:literal
        $(answered $($answered:tt)|+;)?
        $(whole $whole:ident $({ $($whole_fixed:tt)* })?;)?
        $(call $call:ident $keys:tt;)*
        $(patch $patch:ident $patch_keys:tt $(as $patch_schema:literal)? $({ $($fixed:tt)* })?;)?
        $(rule $rule:expr;)?
        $(variants $variants:expr;)?
        fields $fields:tt
        $(flat $flat:ident: $flat_type:ident $flat_fields:tt)?
        $(part $part:ident: $by:ident $part_fields:tt)*
        $(others $others:tt)?
    ) => {
        $(#[$doc])*
        pub(crate) struct $name;
        $crate::decode::object::object!(
            @fields $name $what $schema [$($($answered)|+)?] [$($variants)?] [$($others)? $($flat_fields)? $fields $($part_fields)*]
        );
        $crate::decode::object::object!(
            @whole $name $schema [$($whole {$($($whole_fixed)*)?})?] [$($rule)?] $fields [$($flat: FLAT)? $($part: $by)*]
        );
        $crate::decode::object::object!(@calls $name $schema [$($call $keys)*] [$($rule)?] $fields [$($flat: FLAT)? $($part: $by)*]);
        $($crate::decode::object::object!(@call $name [$schema] $flat_type () {} [] $flat_fields []);)?
        $crate::decode::object::object!(
            @patch $name [$schema $($($patch_schema)?)?] [$($patch $patch_keys {$($($fixed)*)?})?] $fields [$($flat: FLAT)? $($part: $by)*]
        );
    };

    (@fields $name:ident $what:literal $schema:literal [$($answered:tt)*] [$($variants:expr)?] [$({
        $($field:ident $(as $json:literal)?: $type:ty = $form:expr, $presence:ident $($given:expr)?, $sentence:expr;)*
    })*]) => {
        impl $name {
            const NAMES: &'static [&'static str] =
                &[$($($crate::decode::object::json_name!($field $($json)?),)*)*];
            /// The fields by which a reader opens the object.
            pub(in crate::decode) const SHAPE: &'static $crate::decode::fields::ObjectShape<{ Self::NAMES.len() }> =
                &$crate::decode::fields::ObjectShape {
                    what: $what,
                    fields: [$($($crate::decode::object::json_name!($field $($json)?),)*)*],
                    answered: $crate::decode::object::object!(@answered $($answered)*),
                };
            $($(
                #[doc = $sentence]
                pub(in crate::decode) fn $field()
                -> $crate::decode::object::ObjectField<$type, impl $crate::decode::forms::Form<$type>> {
                    $crate::decode::object::ObjectField::new(
                        $crate::decode::object::json_name!($field $($json)?),
                        $form,
                    )
                }
            )*)*
        }
        impl $crate::decode::object::Described for $name {
            fn spec() -> $crate::decode::object::ObjectSpec {
                $crate::decode::object::ObjectSpec {
                    schema: $schema,
                    fields: vec![$($($crate::decode::object::FieldSpec {
                        name: $crate::decode::object::json_name!($field $($json)?),
                        kind: $crate::decode::forms::Form::<$type>::kind($name::$field().form()),
                        presence: $crate::decode::object::presence!($presence),
                        sentence: $sentence,
                    },)*)*],
                    variants: $crate::decode::object::object!(@or_none $($variants)?),
                }
            }
        }
    };
    (@by FLAT) => { $crate::decode::object::Flat };
    (@by $by:ident) => { $by };
    (@last $one:literal) => { $one };
    (@last $one:literal $other:literal) => { $other };
    (@or_none) => { &[] };
    (@or_none $list:expr) => { $list };
    (@answered) => { |_| false };
    (@answered $($by:tt)|+) => { |name: &str| $($crate::decode::object::object!(@shows name $by))||+ };
    (@shows $name:ident $word:literal) => { $name == $word };
    (@shows $name:ident $view:ident) => { <$view as $crate::view::View>::shows($name) };

    (@whole $name:ident $schema:literal [] $rule:tt $fields:tt $parts:tt) => {};
    (@whole $name:ident $schema:literal [$whole:ident $fixed:tt] $rule:tt $fields:tt $parts:tt) => {
        $crate::decode::object::object!(@call $name [$schema] $whole () $fixed $rule $fields $parts);
        impl $crate::decode::forms::Form<$whole> for $name {
            fn read(
                &self,
                value: $crate::decode::fields::Value<'_, '_>,
            ) -> Result<$whole, $crate::refusal::Refusal> {
                $crate::decode::object::Call::of_value((), value)
            }
            fn check(
                &self,
                value: &$whole,
                at: &$crate::at::At<'_>,
            ) -> Result<(), $crate::refusal::Refusal> {
                $crate::decode::object::SentBody::check_body(value, at)
            }
            fn write<S: serde::Serializer>(&self, value: &$whole, to: S) -> Result<S::Ok, S::Error> {
                $crate::decode::object::SentBody::write_body(value, to)
            }
            fn kind(&self) -> $crate::decode::forms::ValueKind {
                $crate::decode::forms::ValueKind::Object($schema)
            }
        }
    };

    (@calls $name:ident $schema:literal [] $rule:tt $fields:tt $parts:tt) => {};
    (@calls $name:ident $schema:literal [$call:ident $keys:tt $($more:tt)*] $rule:tt $fields:tt $parts:tt) => {
        $crate::decode::object::object!(@call $name [$schema] $call $keys {} $rule $fields $parts);
        $crate::decode::object::object!(@calls $name $schema [$($more)*] $rule $fields $parts);
    };

    (@call $name:ident [$schema:literal $($own_schema:literal)?] $call:ident ($($key:ident: $key_type:ty),*) {$($fixed:tt)*} [$($rule:expr)?] {
        $($field:ident $(as $json:literal)?: $type:ty = $form:expr, $presence:ident $($given:expr)?, $sentence:expr;)*
    } [$($part:ident: $by:ident)*]) => {
        impl $crate::decode::object::Call for $call {
            type Keys = ($($key_type,)*);
            const SCHEMA: &'static str = $crate::decode::object::object!(@last $schema $($own_schema)?);
            fn of_value(
                keys: Self::Keys,
                value: $crate::decode::fields::Value<'_, '_>,
            ) -> Result<Self, $crate::refusal::Refusal> {
                Self::of_fields(keys, &value.fields($name::SHAPE)?)
            }
            fn of_fields<const N: usize>(
                ($($key,)*): Self::Keys,
                fields: &$crate::decode::fields::Fields<'_, '_, N>,
            ) -> Result<Self, $crate::refusal::Refusal> {
                let call = $call {
                    $($key,)*
                    $($field: $crate::decode::object::read_field!(fields, $name::$field(), $presence $($given)?),)*
                    $($part: $crate::decode::object::Part::read(&$crate::decode::object::object!(@by $by), fields)?,)*
                    $($fixed)*
                };
                $($rule(&call, &fields.at)?;)?
                Ok(call)
            }
        }
        impl $crate::decode::object::SentBody for $call {
            fn check_body(&self, at: &$crate::at::At<'_>) -> Result<(), $crate::refusal::Refusal> {
                $($crate::decode::object::check_field!(at, $name::$field(), self.$field, $presence);)*
                $($crate::decode::object::Part::check(&$crate::decode::object::object!(@by $by), &self.$part, at)?;)*
                $($rule(self, at)?;)?
                Ok(())
            }
            fn write_members<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $($crate::decode::object::put_field!(map, $name::$field(), self.$field, $presence);)*
                $($crate::decode::object::Part::write(&$crate::decode::object::object!(@by $by), &self.$part, map)?;)*
                Ok(())
            }
        }
    };

    (@patch $name:ident $schema:tt [] $fields:tt $parts:tt) => {};
    (@patch $name:ident $schema:tt [$patch:ident $keys:tt $fixed:tt] {
        $($field:ident $(as $json:literal)?: $type:ty = $form:expr, $presence:ident $($given:expr)?, $sentence:expr;)*
    } $parts:tt) => {
        $crate::decode::object::object!(@call $name $schema $patch $keys $fixed [] {
            $($field $(as $json)?: $type = $form, patch, $sentence;)*
        } $parts);
    };
}
pub(crate) use {bounded_bodies, check_field, json_name, object, presence, put_field, read_field};
