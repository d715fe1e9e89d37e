//! Where a value stands in a request. It costs nothing until a refusal writes it down.

use std::fmt;

use crate::sentences::cut;

/// A place, counted from the whole body. As text it is a pointer of RFC 6901.
#[derive(Clone, Copy, Debug)]
pub enum At<'p> {
    /// The body itself.
    Body,
    /// A member of the object at a place.
    Member(&'p At<'p>, &'p str),
    /// An item of the array at a place.
    Item(&'p At<'p>, usize),
}

impl At<'_> {
    /// What sentences call it.
    pub(super) fn label(&self) -> String {
        match self {
            At::Body => "the body".to_owned(),
            At::Member(_, name) => format!("{:?}", cut(name)),
            At::Item(At::Body, index) => format!("item {index}"),
            At::Item(of, index) => format!("item {index} of {}", of.label()),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Body => Ok(()),
            At::Member(of, name) => write!(f, "{of}/{}", escaped(name)),
            At::Item(of, index) => write!(f, "{of}/{index}"),
        }
    }
}

/// A name as a part of a pointer: `~` is `~0`, `/` is `~1`.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_rfc_6901() {
        let body = At::Body;
        let settle = At::Member(&body, "settle");
        let item = At::Item(&settle, 3);
        let labels = At::Member(&item, "labels");
        for (at, pointer) in [
            (body, ""),
            (settle, "/settle"),
            (item, "/settle/3"),
            (At::Member(&labels, "a/b~c"), "/settle/3/labels/a~1b~0c"),
            (At::Member(&labels, ""), "/settle/3/labels/"),
        ] {
            assert_eq!(at.to_string(), pointer);
        }
    }
}
