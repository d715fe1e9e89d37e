//! The parents and the children of a job.

use maud::{Markup, html};
use tenure_core::flow::{ChildView, ParentState, ParentView, ShownParent};
use tenure_core::names::FlowName;
use tenure_core::requests::Listed;

use crate::language::sentences;
use crate::show::state;
use crate::visit::Visit;

sentences! { KinWords;
    parents: "Waits for", "等待";
    children: "Dependents", "被等待";
    gone: "no longer kept", "已不再保留";
    flow: "flow", "流程";
    more: "There are more.", "还有更多。";
}

/// The parents of a job, as far as the visitor may know them.
pub(super) enum KnownParents<'j> {
    /// With their states.
    Listed(Listed<ParentView>),
    /// As the job names them.
    Named(&'j [ShownParent]),
}

impl KnownParents<'_> {
    fn rows(&self, visit: &Visit, words: KinWords) -> Vec<Markup> {
        match self {
            KnownParents::Listed(list) => {
                list.items.iter().map(|parent| parent_row(visit, words, parent)).collect()
            }
            KnownParents::Named(after) => {
                after.iter().map(|parent| named_row(visit, words, parent)).collect()
            }
        }
    }

    fn has_more(&self) -> bool {
        matches!(self, KnownParents::Listed(list) if list.next.is_some())
    }
}

/// Both lists, without empty ones.
pub(super) fn panel(
    visit: &Visit,
    parents: &KnownParents<'_>,
    children: &Listed<ChildView>,
) -> Markup {
    let words = KinWords(visit.tongue);
    let rows = parents.rows(visit, words);
    html! {
        @if !rows.is_empty() {
            section class="panel" {
                header { h2 { (words.parents()) } }
                ul class="calls kin" {
                    @for row in &rows { li { (row) } }
                    @if parents.has_more() { li class="faint" { (words.more()) } }
                }
            }
        }
        @if !children.items.is_empty() {
            section class="panel" {
                header { h2 { (words.children()) } }
                ul class="calls kin" {
                    @for child in &children.items {
                        li {
                            a class="mono" href=(visit.to("jobs", &child.id)) { (child.id) }
                            (state(child.state, visit.tongue))
                        }
                    }
                    @if children.next.is_some() { li class="faint" { (words.more()) } }
                }
            }
        }
    }
}

fn named_row(visit: &Visit, words: KinWords, parent: &ShownParent) -> Markup {
    match parent {
        ShownParent::Flow { flow } => flow_row(visit, words, flow),
        ShownParent::Job(id) => html! { a class="mono" href=(visit.to("jobs", id)) { (id) } },
    }
}

fn flow_row(visit: &Visit, words: KinWords, flow: &FlowName) -> Markup {
    html! {
        a href=(visit.to("flows", flow)) { (flow) }
        span class="soft" { (words.flow()) }
    }
}

fn parent_row(visit: &Visit, words: KinWords, parent: &ParentView) -> Markup {
    match parent {
        ParentView::Flow { flow, .. } => flow_row(visit, words, flow),
        ParentView::Job(job) => html! {
            a class="mono" href=(visit.to("jobs", &job.id)) { (job.id) }
            @match job.state {
                ParentState::There(at) => (state(at, visit.tongue)),
                ParentState::Gone(_) => span class="soft" { (words.gone()) },
            }
        },
    }
}
