//! The jobs of a flow as a graph: each job stands one step right of the last of its parents. Below it the same jobs are
//! a list, for people who read or listen instead of looking.

use std::collections::HashMap;

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::flow::ShownParent;
use tenure_core::job::{JobState, JobView};

use crate::language::sentences;
use crate::payloads::PayloadLines;
use crate::show::{ago, id, id_link, in_parts, payload_row, scroll_table, state, word};
use crate::visit::Visit;

sentences! { GraphWords;
    title: "Dependencies", "依赖关系";
    drawn(n, all): "the newest {n} of {all} jobs", "最新的 {n} 个任务，共 {all} 个";
    more(n): "{n} more", "另外 {n} 个";
    outside(n): "and {n} elsewhere", "以及其他 {n} 个";
    step: "Step", "步骤";
    job: "Job", "任务";
    state: "State", "状态";
    waits_for: "Waits for", "等待";
    queue: "Queue", "队列";
    when: "When", "时间";
}

/// Jobs of one step that are drawn; one more box has the number of the others.
const ROWS_MAX: usize = 10;
/// Characters of a kind or a queue that fit into a box, and of an id beside the state.
const NAME_SHOWN: usize = 21;
const END_SHOWN: usize = 9;
const PAYLOAD_SHOWN: usize = 24;
const WIDTH: usize = 184;
const HEIGHT: usize = 44;
const HEIGHT_WITH_PAYLOAD: usize = 60;
const BETWEEN_STEPS: usize = 48;
const BETWEEN_ROWS: usize = 12;
/// Around everything, for the outlines of boxes.
const MARGIN: usize = 2;

/// The jobs of a flow, oldest first, each with its step, and with those of its parents that are in the list.
struct Steps<'j> {
    jobs: Vec<&'j JobView>,
    step: Vec<usize>,
    parents: Vec<Vec<usize>>,
    lines: &'j PayloadLines,
    /// Of a box, in pixels of the picture.
    height: usize,
}

impl<'j> Steps<'j> {
    /// `newest_first`: in the order of a list of jobs.
    fn of(newest_first: &'j [JobView], lines: &'j PayloadLines) -> Self {
        let jobs: Vec<&JobView> = newest_first.iter().rev().collect();
        let at: HashMap<&str, usize> =
            jobs.iter().enumerate().map(|(at, job)| (job.id.as_str(), at)).collect();
        let known = |parent: &ShownParent| match parent {
            ShownParent::Job(id) => at.get(id.as_str()).copied(),
            ShownParent::Flow { .. } => None,
        };
        let parents: Vec<Vec<usize>> =
            jobs.iter().map(|job| job.after.iter().filter_map(known).collect()).collect();
        let mut step = vec![0; jobs.len()];
        // No job waits for itself through others, so this ends after as many rounds as there are steps.
        for _ in 0..jobs.len() {
            let before = step.clone();
            for (job, parents) in parents.iter().enumerate() {
                step[job] = parents.iter().map(|parent| step[*parent] + 1).max().unwrap_or(0);
            }
            if step == before {
                break;
            }
        }
        let has_lines = jobs.iter().any(|job| lines.get(&job.id).is_some());
        let height = if has_lines { HEIGHT_WITH_PAYLOAD } else { HEIGHT };
        Steps { jobs, step, parents, lines, height }
    }

    /// The jobs of each step from top to bottom: near the middle of their parents, so that few lines cross.
    fn columns(&self) -> Vec<Vec<usize>> {
        let last = self.step.iter().max().copied().unwrap_or(0);
        let mut row = vec![0.0; self.jobs.len()];
        let mut columns = Vec::new();
        for step in 0..=last {
            let mut column: Vec<usize> =
                (0..self.jobs.len()).filter(|job| self.step[*job] == step).collect();
            let middle = |job: &usize| {
                let parents = &self.parents[*job];
                let sum: f64 = parents.iter().map(|parent| row[*parent]).sum();
                sum / parents.len().max(1) as f64
            };
            column.sort_by(|one, two| middle(one).total_cmp(&middle(two)));
            for (at, job) in column.iter().enumerate() {
                row[*job] = at as f64;
            }
            columns.push(column);
        }
        columns
    }
}

/// The graph and the list. `all`: how many jobs the flow has had.
pub(super) fn panel(
    visit: &Visit,
    newest_first: &[JobView],
    lines: &PayloadLines,
    all: u64,
) -> Markup {
    let words = GraphWords(visit.tongue);
    let steps = Steps::of(newest_first, lines);
    let shown = newest_first.len() as u64;
    html! {
        section class="panel" {
            header {
                h2 { (words.title()) }
                @if all > shown { p { (words.drawn(grouped(shown), grouped(all))) } }
            }
            div class="scroll graph-frame" { (picture(visit, words, &steps)) }
            (list(visit, words, &steps))
        }
    }
}

impl Steps<'_> {
    /// The corner of a box, by its step and its row.
    fn corner(&self, step: usize, row: usize) -> (usize, usize) {
        (MARGIN + step * (WIDTH + BETWEEN_STEPS), MARGIN + row * (self.height + BETWEEN_ROWS))
    }
}

fn picture(visit: &Visit, words: GraphWords, steps: &Steps<'_>) -> Markup {
    let columns = steps.columns();
    let rows = columns.iter().map(|column| column.len().min(ROWS_MAX + 1)).max().unwrap_or(0);
    let (width, height) = steps.corner(columns.len(), rows);
    let (width, height) = (width - BETWEEN_STEPS + MARGIN, height - BETWEEN_ROWS + MARGIN);
    let mut place: Vec<Option<(usize, usize)>> = vec![None; steps.jobs.len()];
    for (step, column) in columns.iter().enumerate() {
        for (row, job) in column.iter().take(ROWS_MAX).enumerate() {
            place[*job] = Some(steps.corner(step, row));
        }
    }
    let lines = steps.parents.iter().enumerate().flat_map(|(job, parents)| {
        let place = &place;
        parents.iter().filter_map(move |parent| {
            Some((place[*parent]?, place[job]?, steps.jobs[*parent].state == JobState::Succeeded))
        })
    });
    html! {
        svg class="graph" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
            role="group" aria-label=(words.title()) {
            @for ((from_x, from_y), (to_x, to_y), is_met) in lines {
                path class={ "edge" @if is_met { " met" } } d=(line(
                    (from_x + WIDTH, from_y + steps.height / 2), (to_x, to_y + steps.height / 2),
                )) {}
            }
            @for (job, place) in steps.jobs.iter().zip(&place) {
                @if let Some((x, y)) = place { (box_of(visit, steps, job, *x, *y)) }
            }
            @for (step, column) in columns.iter().enumerate().filter(|(_, column)| column.len() > ROWS_MAX) {
                @let (x, y) = steps.corner(step, ROWS_MAX);
                text class="more" x=(x + 12) y=(y + 18) { (words.more(column.len() - ROWS_MAX)) }
            }
        }
    }
}

/// A line that is horizontal at both ends.
fn line((from_x, from_y): (usize, usize), (to_x, to_y): (usize, usize)) -> String {
    let half = BETWEEN_STEPS / 2;
    format!("M{from_x} {from_y}C{} {from_y} {} {to_y} {to_x} {to_y}", from_x + half, to_x - half)
}

fn box_of(visit: &Visit, steps: &Steps<'_>, job: &JobView, x: usize, y: usize) -> Markup {
    let id = job.id.as_str();
    // The kind or the queue says more than the id, whose end is enough to distinguish two jobs.
    let what = if job.kind.is_empty() { job.queue.as_str() } else { &job.kind };
    let name = cut(what, NAME_SHOWN);
    let (begin, _, end) = in_parts(id);
    let end = if end.is_empty() { begin } else { end };
    let end = cut(end, END_SHOWN);
    let payload = steps.lines.get(&job.id);
    html! {
        a href=(visit.to("jobs", id)) class=(job.state.as_str()) {
            title { (id) " · " (job.queue) @if !job.kind.is_empty() { " · " (job.kind) } @if let Some(line) = payload { " · " (line) } }
            rect class="box" x=(x) y=(y) width=(WIDTH) height=(steps.height) rx="6" {}
            text class="name" x=(x + 12) y=(y + 18) { (name) }
            circle cx=(x + 16) cy=(y + 32) r="4" {}
            text class="word" x=(x + 26) y=(y + 36) { (word(job.state, visit.tongue)) }
            text class="end" x=(x + WIDTH - 10) y=(y + 36) text-anchor="end" { (end) }
            @if let Some(line) = payload { text class="end" x=(x + 12) y=(y + 52) { (cut(line, PAYLOAD_SHOWN)) } }
        }
    }
}

/// A text of at most this many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() > most {
        text.chars().take(most - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

fn list(visit: &Visit, words: GraphWords, steps: &Steps<'_>) -> Markup {
    let mut order: Vec<usize> = (0..steps.jobs.len()).collect();
    order.sort_by_key(|job| steps.step[*job]);
    let heads = html! {
        th scope="col" class="num" { (words.step()) }
        th scope="col" { (words.job()) }
        th scope="col" { (words.state()) }
        th scope="col" { (words.waits_for()) }
        th scope="col" { (words.queue()) }
        th scope="col" class="num" { (words.when()) }
    };
    let rows = html! {
        @for job in order {
            (row(visit, words, steps, job))
            (payload_row(steps.lines.get(&steps.jobs[job].id), false, COLUMNS))
        }
    };
    scroll_table(None, heads, rows)
}

/// Columns of the list.
const COLUMNS: usize = 6;
/// Parents that a row names.
const PARENTS_SHOWN: usize = 3;

fn row(visit: &Visit, words: GraphWords, steps: &Steps<'_>, at: usize) -> Markup {
    let job = steps.jobs[at];
    let parents = || job.after.iter().take(PARENTS_SHOWN);
    let others = (job.parents as usize).saturating_sub(parents().count());
    html! {
        tr {
            td class="num tight soft" { (steps.step[at] + 1) }
            th scope="row" class="c-id mono" {
                (id_link(visit, &visit.to("jobs", &job.id), job.id.as_str()))
            }
            td { (state(job.state, visit.tongue)) }
            td {
                @for parent in parents() {
                    @match parent {
                        ShownParent::Job(of) => a class="mono" href=(visit.to("jobs", of)) { (id(of.as_str())) },
                        ShownParent::Flow { flow } => a href=(visit.to("flows", flow)) { (flow) },
                    }
                    " "
                }
                @if others > 0 { span class="faint" { (words.outside(others)) } }
            }
            td { a href=(visit.to("queues", &job.queue)) { (job.queue) } @if !job.kind.is_empty() { " " span class="soft" { (job.kind) } } }
            td class="num soft" { (ago(visit, job.finished_at.unwrap_or(job.created_at))) }
        }
    }
}
