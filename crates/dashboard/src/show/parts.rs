//! Parts of pages: buttons that act, the question before an action that destroys, the notice after it, the end of a
//! list, the same as a command.

use maud::{Markup, html};
use tenure_core::access::TokenName;
use tenure_core::count::grouped;

use crate::command::ShownCommand;
use crate::language::sentences;
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { PartWords;
    by_command: "On the command line", "等价的命令行";
    by(name): "by {name}", "由 {name}";
    back: "Leave it as it is", "返回，不做更改";
    next_page: "Next page", "下一页";
    first_page: "First page", "第一页";
    partial: "These are the matches among the first 10,000 items; the next page continues the search.",
        "仅查看了前 10,000 条；下一页会继续查找。";
}

/// The same as a page, for the command line.
pub(crate) fn command(visit: &Visit, shown: &ShownCommand) -> Markup {
    commands(visit, std::slice::from_ref(shown))
}

/// The same as a page and each of its buttons.
pub(crate) fn commands(visit: &Visit, shown: &[ShownCommand]) -> Markup {
    html! {
        details class="same" {
            summary { (PartWords(visit.tongue).by_command()) }
            @for one in shown { code class="cmd" tabindex="0" { (one.text()) } }
        }
    }
}

/// The caller of a change, behind it; nothing where no caller is known.
pub(crate) fn caller(visit: &Visit, name: Option<&TokenName>) -> Markup {
    html! { @if let Some(name) = name { span class="soft" { " " (PartWords(visit.tongue).by(name)) } } }
}

/// A button that does one thing: a form without fields that is sent to `path`. Like all parts that lead to an action, it
/// is not there for a visitor whose token does not permit the action.
pub(crate) fn button(visit: &Visit, path: &str, class: &str, label: &str) -> Markup {
    html! {
        @if visit.may_act(path) {
            form method="post" action=(visit.link(path)) {
                button class=(class) { (label) }
            }
        }
    }
}

/// A link to the question before an action, or to its form, at the path of the action.
pub(crate) fn ask_link(visit: &Visit, path: &str, class: &str, label: &str) -> Markup {
    html! { @if visit.may_act(path) { a class=(class) href=(visit.link(path)) { (label) "…" } } }
}

/// A form in a line: fields that the visitor fills in, and a button.
pub(crate) fn form(visit: &Visit, path: &str, fields: Markup, label: &str) -> Markup {
    html! {
        @if visit.may_act(path) {
            form class="inline" method="post" action=(visit.link(path)) {
                (fields)
                button { (label) }
            }
        }
    }
}

/// A row of a list of facts; nothing if the value is `None`.
pub(crate) fn fact(name: &str, value: Option<Markup>) -> Markup {
    html! { @if let Some(value) = value { dt { (name) } dd { (value) } } }
}

/// The question before an action that destroys. It is a page of its own, so it needs no JavaScript: the button on the
/// page before is a link to the path of the action, and this form is sent to the same path.
pub(crate) struct Confirm<'c> {
    pub title: String,
    /// The losses and risks, a sentence each.
    pub says: Vec<String>,
    /// Hidden fields of the form.
    pub fields: &'c [(&'c str, &'c str)],
    /// Other fields, for the visitor to fill in.
    pub asks: Option<Markup>,
    /// Text of the button.
    pub label: String,
    pub is_danger: bool,
    pub command: ShownCommand,
    /// Where to go instead.
    pub back: String,
}

impl Confirm<'_> {
    /// Draws it as a page.
    pub(crate) fn ask(self, visit: &Visit) -> Result<Drawn, Unanswered> {
        let words = PartWords(visit.tongue);
        let class = if self.is_danger { "danger main" } else { "main" };
        let body = html! {
            section class="panel narrow" {
                header { h1 { (self.title) } }
                div class="body" {
                    form class="fields" method="post" action=(visit.link(&visit.path)) {
                        @for says in &self.says { p { (says) } }
                        @for (name, value) in self.fields {
                            input type="hidden" name=(name) value=(value);
                        }
                        @if let Some(asks) = &self.asks { (asks) }
                        div class="acts" {
                            button class=(class) { (self.label) }
                            a class="btn" href=(self.back) { (words.back()) }
                        }
                        code class="cmd" tabindex="0" { (self.command.text()) }
                    }
                }
            }
        };
        Sheet::still(self.title, body)
    }
}

/// The question before an action that destroys, and needs nothing but a yes. `words`: the same as a command; `back`: where
/// to go instead.
pub(crate) fn ask_to_destroy(
    visit: &Visit,
    title: String,
    says: Vec<String>,
    label: String,
    words: &[&str],
    back: String,
) -> Result<Drawn, Unanswered> {
    let command = visit.command(words);
    Confirm { title, says, fields: &[], asks: None, label, is_danger: true, command, back }
        .ask(visit)
}

/// The question before the thing of this page is deleted. `noun`: its name on the command line; `list`: the path of its
/// list.
pub(crate) fn ask_to_delete(
    visit: &Visit,
    (noun, list): (&str, &str),
    title: String,
    what: String,
    label: String,
) -> Result<Drawn, Unanswered> {
    let name = visit.name();
    ask_to_destroy(visit, title, vec![what], label, &[noun, "delete", name], visit.to(list, name))
}

/// The notice of the action that led here, if the address has one: `did` is one of these keys.
pub(crate) fn done(visit: &Visit, all: &[(&str, String)]) -> Markup {
    let did = visit.query.get("did");
    let found = all.iter().find(|(key, _)| Some(*key) == did);
    html! { @if let Some((_, says)) = found { p class="notice" role="status" { (says) } } }
}

/// A table that is scrolled sideways where the window is narrow: the cells of its head, and its rows.
pub(crate) fn scroll_table(class: Option<&str>, heads: Markup, rows: Markup) -> Markup {
    html! {
        div class="scroll" {
            table class=[class] {
                thead { tr { (heads) } }
                tbody { (rows) }
            }
        }
    }
}

/// A cell with a number, which is faint if it is 0.
pub(crate) fn number_cell(n: u64) -> Markup {
    html! { td class={ "num" @if n == 0 { " zero" } } { (grouped(n)) } }
}

/// An empty list, with the reason.
pub(crate) fn empty(says: &str) -> Markup {
    html! { p class="empty" { (says) } }
}

/// The end of a page of a list: a note about omitted items, and a link to the next page. `kept`: the query beside the
/// cursor.
pub(crate) fn pager(
    visit: &Visit,
    path: &str,
    kept: &[(&str, &str)],
    next: Option<&str>,
    is_partial: bool,
) -> Markup {
    let words = PartWords(visit.tongue);
    let is_first = visit.query.get("cursor").is_none();
    let to = |cursor: &str| {
        let mut pairs = kept.to_vec();
        pairs.push(("cursor", cursor));
        visit.link_with(path, &pairs)
    };
    html! {
        @if next.is_some() || !is_first || is_partial {
            div class="pager" {
                span { @if is_partial { (words.partial()) } }
                span class="acts" {
                    @if !is_first { a href=(to("")) { (words.first_page()) } }
                    @if let Some(next) = next { a href=(to(next)) rel="next" { (words.next_page()) } }
                }
            }
        }
    }
}
