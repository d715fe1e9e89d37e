//! The parents and the children of a job.

use maud::{Markup, html};
use tenure_core::flow::{ChildView, ParentState, ParentView};
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

/// Both lists, without empty ones.
pub(super) fn panel(
    visit: &Visit,
    parents: Option<&Listed<ParentView>>,
    children: &Listed<ChildView>,
) -> Markup {
    let words = KinWords(visit.tongue);
    html! {
        @if let Some(parents) = parents.filter(|parents| !parents.items.is_empty()) {
            section class="panel" {
                header { h2 { (words.parents()) } }
                ul class="calls kin" {
                    @for parent in &parents.items { li { (parent_row(visit, words, parent)) } }
                    @if parents.next.is_some() { li class="faint" { (words.more()) } }
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

fn parent_row(visit: &Visit, words: KinWords, parent: &ParentView) -> Markup {
    match parent {
        ParentView::Flow { flow, .. } => html! {
            a href=(visit.to("flows", flow)) { (flow) }
            span class="soft" { (words.flow()) }
        },
        ParentView::Job(job) => html! {
            a class="mono" href=(visit.to("jobs", &job.id)) { (job.id) }
            @match job.state {
                ParentState::There(at) => (state(at, visit.tongue)),
                ParentState::Gone(_) => span class="soft" { (words.gone()) },
            }
        },
    }
}
