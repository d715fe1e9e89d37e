//! Values as Lua sends them: `false` for none, and an empty list for an empty map.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    Deserialize, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

/// A value that may be none: absent, `nil` or `false`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Maybe<T>(pub Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Maybe(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(MaybeVisitor(PhantomData))
    }
}

struct MaybeVisitor<T>(PhantomData<T>);

macro_rules! passed_on {
    ($($visit:ident $type:ty;)*) => {$(
        fn $visit<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map(|value| Maybe(Some(value)))
        }
    )*};
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for MaybeVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or false")
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        if !value {
            return Ok(Maybe(None));
        }
        T::deserialize(value.into_deserializer()).map(|value| Maybe(Some(value)))
    }
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }
    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(seq)).map(|value| Maybe(Some(value)))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Maybe(Some(value)))
    }
    passed_on! {
        visit_u64 u64;
        visit_i64 i64;
        visit_f64 f64;
        visit_str &str;
    }
}

/// A map, or the empty list that an empty one comes as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LuaMap<V>(pub BTreeMap<String, V>);

impl<V> Default for LuaMap<V> {
    fn default() -> Self {
        LuaMap(BTreeMap::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for LuaMap<V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(TableVisitor(PhantomData))
    }
}

struct TableVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for TableVisitor<V> {
    type Value = LuaMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            all.insert(key, value);
        }
        Ok(LuaMap(all))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(LuaMap::default()),
            Some(_) => Err(A::Error::custom("a list where a map is meant")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: for<'de> Deserialize<'de>>(value: &impl serde::Serialize) -> Option<T> {
        rmp_serde::from_slice(&rmp_serde::to_vec_named(value).unwrap()).ok()
    }

    #[test]
    fn false_and_nil_are_none() {
        assert_eq!(of::<Maybe<u64>>(&false), Some(Maybe(None)));
        assert_eq!(of::<Maybe<u64>>(&None::<u64>), Some(Maybe(None)));
        assert_eq!(of::<Maybe<u64>>(&7), Some(Maybe(Some(7))));
        assert_eq!(of::<Maybe<String>>(&"a"), Some(Maybe(Some("a".to_owned()))));
        assert_eq!(of::<Maybe<(u64, u64)>>(&(1, 2)), Some(Maybe(Some((1, 2)))));
        assert_eq!(of::<Maybe<bool>>(&true), Some(Maybe(Some(true))));
        assert_eq!(of::<Maybe<u64>>(&"a"), None);
    }

    #[test]
    fn an_empty_list_is_an_empty_map() {
        assert_eq!(of::<LuaMap<u64>>(&Vec::<u64>::new()), Some(LuaMap::default()));
        let one = BTreeMap::from([("a".to_owned(), 1u64)]);
        assert_eq!(of::<LuaMap<u64>>(&one), Some(LuaMap(one)));
        assert_eq!(of::<LuaMap<u64>>(&[1u64]), None);
    }
}
