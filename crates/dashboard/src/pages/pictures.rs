//! The last hour or day as pictures, on the overview and on the page of a queue.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::names::QueueName;
use tenure_core::time::Span;

use crate::history::Minute;
use crate::language::sentences;
use crate::show::{bars_of_two, for_people, lines_of_two};
use crate::visit::Visit;

sentences! { Says;
    hour: "Hour", "小时";
    day: "Day", "天";
    throughput_hour: "Runs per minute", "每分钟结束的运行";
    throughput_day: "Runs per 15 minutes", "每 15 分钟结束的运行";
    succeeded: "succeeded", "成功";
    pushed: "pushed", "推送";
    failed: "failed", "失败";
    wait: "Wait from due to start", "从到期到开始的等待";
    run: "Run time", "运行时长";
    oldest: "Age of the oldest ready job", "最早就绪任务的就绪时长";
    half: "median", "一半不超过";
    most: "95th percentile", "95% 不超过";
    hour_ago: "60 min ago", "60 分钟前";
    day_ago: "24 h ago", "24 小时前";
    now: "now", "现在";
    whence: "Counted by this server since it began to serve the store; earlier values come from the events that the store keeps.",
        "自本服务器开始服务该存储起由其统计；此前依据存储保留的事件。";
}

const MINUTES_OF_HOUR: usize = 60;
const MINUTES_OF_DAY: usize = 24 * 60;
const MINUTES_OF_BAR: usize = 15;

/// The pictures that a page may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Picture {
    Runs,
    Waits,
    RunTimes,
    /// Only of a namespace.
    OldestReady,
}

/// The minutes of a namespace or of a queue, and their pictures.
pub(super) struct Pictures {
    says: Says,
    minutes: Vec<Minute>,
    /// A day, not an hour.
    pub is_day: bool,
}

impl Pictures {
    /// For the span that the visit asks for; `None` without a history.
    pub(super) fn of(visit: &Visit, queue: Option<&QueueName>) -> Option<Self> {
        let is_day = visit.query.get("over") == Some("day");
        let most = if is_day { MINUTES_OF_DAY } else { MINUTES_OF_HOUR };
        let minutes = visit.history.as_ref()?.minutes(&visit.namespace, queue, most);
        Some(Pictures { says: Says(visit.tongue), minutes, is_day })
    }

    /// How many runs succeeded, and how many failed.
    pub(super) fn ended(&self) -> (u64, u64) {
        let sum = |pick: fn(&Minute) -> u64| self.minutes.iter().map(pick).sum();
        (sum(|minute| minute.succeeded), sum(|minute| minute.failed))
    }

    /// The hour or the day, on the page of this path.
    pub(super) fn tabs(&self, visit: &Visit, path: &str) -> Markup {
        html! {
            div class="tabs" {
                a href=(visit.link(path)) aria-current=[(!self.is_day).then_some("true")] { (self.says.hour()) }
                a href=(visit.link_with(path, &[("over", "day")]))
                    aria-current=[self.is_day.then_some("true")] { (self.says.day()) }
            }
        }
    }

    /// These pictures, and the origin of their numbers.
    pub(super) fn draw(&self, pictures: &[Picture]) -> Markup {
        html! {
            div class="grid" { @for picture in pictures { (self.panel(*picture)) } }
            p class="faint" { (self.says.whence()) }
        }
    }

    fn panel(&self, picture: Picture) -> Markup {
        let says = self.says;
        let title = match picture {
            Picture::Runs if self.is_day => says.throughput_day(),
            Picture::Runs => says.throughput_hour(),
            Picture::Waits => says.wait(),
            Picture::RunTimes => says.run(),
            Picture::OldestReady => says.oldest(),
        };
        let pair = [("ready", says.half()), ("scheduled", says.most())];
        let (legend, drawn): (Vec<_>, _) = match picture {
            Picture::Runs => {
                let words = [
                    ("ready", says.succeeded()),
                    ("failed", says.failed()),
                    ("came", says.pushed()),
                ];
                (words.into(), self.runs(&title))
            }
            Picture::Waits => (pair.into(), self.times(&title, |m| (m.half_waited, m.most_waited))),
            Picture::RunTimes => (pair.into(), self.times(&title, |m| (m.half_ran, m.most_ran))),
            Picture::OldestReady => (Vec::new(), self.times(&title, |m| (m.oldest_ready, None))),
        };
        html! {
            section class="panel" {
                header {
                    h2 { (title) }
                    @if !legend.is_empty() {
                        p class="legend" {
                            @for (class, word) in legend { span class=(class) { i {} (word) } }
                        }
                    }
                }
                div class="body" { (drawn) }
            }
        }
    }

    /// The minutes of each step of time; the last step is complete.
    fn steps(&self) -> (Vec<&[Minute]>, usize) {
        let (of_step, steps) = if self.is_day {
            (MINUTES_OF_BAR, MINUTES_OF_DAY / MINUTES_OF_BAR)
        } else {
            (1, MINUTES_OF_HOUR)
        };
        (self.minutes.rchunks(of_step).rev().collect(), steps)
    }

    fn ends(&self) -> [String; 2] {
        let says = self.says;
        [if self.is_day { says.day_ago() } else { says.hour_ago() }, says.now()]
    }

    fn runs(&self, name: &str) -> Markup {
        let (bars, steps) = self.steps();
        let sum = |bar: &[Minute], pick: fn(&Minute) -> u64| bar.iter().map(pick).sum::<u64>();
        let of_bar = |bar: &&[Minute]| {
            (sum(bar, |minute| minute.succeeded), sum(bar, |minute| minute.failed))
        };
        let ended: Vec<_> = bars.iter().map(of_bar).collect();
        let pushed: Vec<u64> = bars.iter().map(|bar| sum(bar, |minute| minute.pushed)).collect();
        let [from, now] = self.ends();
        bars_of_two(name, &ended, &pushed, steps, [&from, &now], |n| grouped(n as u64))
    }

    fn times(&self, name: &str, pick: fn(&Minute) -> (Option<Span>, Option<Span>)) -> Markup {
        let (bars, steps) = self.steps();
        // The worst minute of a step, since a mean would hide it.
        let worst = |spans: &mut dyn Iterator<Item = Option<Span>>| {
            spans.flatten().max().map(|span| span.us() as f64)
        };
        let of_bar = |bar: &&[Minute]| {
            let pairs = || bar.iter().map(pick);
            (worst(&mut pairs().map(|pair| pair.0)), worst(&mut pairs().map(|pair| pair.1)))
        };
        let values: Vec<_> = bars.iter().map(of_bar).collect();
        let [from, now] = self.ends();
        lines_of_two(name, &values, steps, [&from, &now], |us| for_people(Span::from_us(us as u64)))
    }
}
