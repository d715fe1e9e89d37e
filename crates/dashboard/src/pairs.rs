//! Names and values in queries and forms, and links with them.

use tenure_core::percent::{decoded, encoded};

/// Names and values in their order, decoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NamedValues(Vec<(String, String)>);

impl NamedValues {
    /// From a query or the body of a form; `None` if it is not encoded as such.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let plain =
            |text: &str| decoded(&text.replace('+', " ")).ok().map(|text| text.into_owned());
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((plain(name)?, plain(value)?))
        });
        pairs.collect::<Option<Vec<_>>>().map(NamedValues)
    }

    /// All values of this name, in their order.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether this name is present, even with an empty value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The first value of this name that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }
}

/// A path with a query of those pairs whose value is not empty.
pub(crate) fn link(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut link = path.to_owned();
    let mut sign = '?';
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        link.push(sign);
        link.push_str(&format!("{}={}", encoded(name), encoded(value)));
        sign = '&';
    }
    link
}

/// A path of these parts. Names may have any character.
pub(crate) fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{}", encoded(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let form = NamedValues::read("q=a+b%26c&empty=&n=%E4%BD%A0").unwrap();
        assert_eq!(form.get("q"), Some("a b&c"));
        assert_eq!(form.get("n"), Some("你"));
        assert_eq!((form.get("empty"), form.get("absent")), (None, None));
        assert_eq!((form.has("empty"), form.has("absent")), (true, false));
        for text in ["q=%", "q=%ff", "%zz=1"] {
            assert_eq!(NamedValues::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_link_carries_what_says_something_and_is_read_back() {
        assert_eq!(link("/jobs", &[("ns", ""), ("q", "")]), "/jobs");
        let made = link("/jobs", &[("ns", "x"), ("q", "error:\"<a&b>\"")]);
        assert_eq!(made, "/jobs?ns=x&q=error:%22%3Ca%26b%3E%22");
        let query = NamedValues::read(made.split_once('?').unwrap().1).unwrap();
        assert_eq!(query.get("q"), Some("error:\"<a&b>\""));
        assert_eq!(path(&["limits", "site:a/b", "pause"]), "/limits/site:a%2Fb/pause");
    }
}
