//! Path and query of a request, percent-decoded.

use std::borrow::Cow;

use tenure_core::percent::decoded;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ValueRefusal;

/// A part of a path; `name` is its name in the route.
pub(crate) fn part<'t>(text: &'t str, name: &str) -> Result<Cow<'t, str>, Refusal> {
    decoded(text).map_err(|_| {
        let no = ValueRefusal::PathEncoding { name: name.to_owned() };
        Refusal::from(no).at(format!("/path/{name}"))
    })
}

/// Query parameters, decoded: names and values.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The parameters of a query, in their order.
pub(crate) fn query(text: Option<&str>) -> Result<Pairs<'_>, Refusal> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let refuse = |name: &str| {
        let place = name.replace('~', "~0").replace('/', "~1");
        let no = ValueRefusal::ParameterEncoding { name: name.to_owned() };
        Refusal::from(no).at(format!("/query/{place}"))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = value_of(name).ok_or_else(|| refuse(name))?;
            let value = value_of(value).ok_or_else(|| refuse(&name))?;
            Ok((name, value))
        })
        .collect()
}

/// A name or value of a query, in which a form writes a space as `+`.
fn value_of(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('+') {
        return decoded(&text.replace('+', " ")).ok().map(|text| Cow::Owned(text.into_owned()));
    }
    decoded(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_encoded_is_refused_where_it_stands() {
        assert_eq!(part("gr%C3%B6%c3%9fe+b", "name").as_deref(), Ok("größe+b"));
        for text in ["%", "%ff"] {
            assert_eq!(part(text, "id").unwrap_err().pointer.as_deref(), Some("/path/id"));
        }
    }

    #[test]
    fn a_query_is_pairs() {
        let pairs = query(Some("a=1&&b=x%26y+z&c&d==")).unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x&y z"), ("c", ""), ("d", "=")]);
        assert!(query(None).unwrap().is_empty());
        assert_eq!(query(Some("a=%FF")).unwrap_err().pointer.as_deref(), Some("/query/a"));
    }
}
