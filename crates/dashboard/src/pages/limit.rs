//! One limit: its permits and their holders, its line, and the cap, changed in place.

use maud::{Markup, html};
use serde_json::Value;
use tenure_core::count::grouped;
use tenure_core::decode::Decode;
use tenure_core::requests::{DeleteLimit, GetLimit, PatchLimit, PauseLimit, ResumeLimit};
use tenure_core::settings::{Holder, LimitView, Waiter};

use super::last_changes::last_changes;
use super::{PageRow, Section, action, draw, limits, rate_fields};
use crate::acting::{Field, back_to, body, said};
use crate::command::ShownCommand;
use crate::language::sentences;
use crate::show::{
    ago, ask_link, ask_to_delete, at, button, clock, commands, done, empty, fact, form,
    scroll_table, squares,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    limits: "Limits", "限额";
    from(template): "settings from {template}", "设置来自 {template}";
    use_of: "Permits", "许可";
    in_use(n): "{n} in use", "已用 {n}";
    in_use_of(n, of): "{n} of {of} in use", "已用 {n} / {of}";
    resting(n): "resting: {n}", "冷却中：{n}";
    outside(n): "used by work outside: {n}", "被外部工作占用：{n}";
    over(n): "beyond the cap: {n}", "超出上限：{n}";
    nobody: "No permit is held.", "没有持有者。";
    line(n): "In line: {n}", "队列：{n} 个在等待";
    line_what: "the first 20", "前 20 个";
    no_line: "Nothing waits.", "没有等待者。";
    place: "Place", "位置";
    job: "Job", "任务";
    caller: "a call for needs only", "仅请求需求的调用";
    queue: "Queue", "队列";
    holder: "Holder", "持有者";
    lease: "Lease", "租约";
    since: "Since", "自";
    settings: "Settings", "设置";
    concurrency: "At once", "并发";
    no_cap: "no cap", "无上限";
    rate: "Rate", "速率";
    burst: "Burst", "突发";
    gap: "Rest of a permit after its use", "许可使用后的冷却";
    quarantine: "Rest after a lost holder", "持有者丢失后的冷却";
    gauge: "Gauge", "外部计数";
    gauge_failed: "It could not be read", "读取失败";
    paused_until: "Paused until", "暂停至";
    change: "Change", "更改";
    change_all: "Change the settings", "更改设置";
    change_what: "An empty field sets no bound. Held permits stay held.",
        "留空的字段表示不限制。已发放的许可保持不变。";
    own_settings: "The limit gets its own settings, and its template no longer applies to it.",
        "此限额将拥有自己的设置，模板不再适用。";
    save: "Save", "保存";
    pause: "Pause", "暂停";
    pause_for: "For how long, such as 30s", "暂停多久，例如 30s";
    resume: "Resume", "恢复";
    delete: "Delete", "删除";
    delete_title(limit): "Delete limit \"{limit}\"?", "删除限额“{limit}”？";
    delete_what: "Its settings are deleted. Jobs that need it wait until it is set again, unless a template matches it.",
        "其设置将被删除。需要它的任务将等待其重新设置，除非有模板提供设置。";
    did_set: "The limit is changed.", "限额已更改。";
    did_pause: "The limit is paused: it grants nothing.", "限额已暂停：不再发放。";
    did_resume: "The limit is resumed.", "限额已恢复。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Limits, "/limits/{}").shows(draw!(show)),
    PageRow::new(Section::Limits, "/limits/{}/set").acts(action!(PatchLimit, set)),
    PageRow::new(Section::Limits, "/limits/{}/pause").acts(action!(PauseLimit, pause)),
    PageRow::new(Section::Limits, "/limits/{}/resume").acts(action!(ResumeLimit, resume)),
    PageRow::new(Section::Limits, "/limits/{}/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeleteLimit, delete)),
];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let limit = visit.ask(GetLimit::of(&visit.names, b"")?).await?;
    let name = limit.name.to_string();
    let path = |action: &str| crate::pairs::path(&["limits", &name, action]);
    let is_paused = limit.paused_until.is_some_and(|until| until > visit.now);
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/limits")) { (says.limits()) } }
                h1 { (name) }
                p class="sub" {
                    @if let Some(standing) = limits::standing(visit, &limit) { (standing) }
                    @if let Some(template) = &limit.template {
                        a href=(visit.to("limits", template)) { (says.from(template)) }
                    }
                }
            }
            div class="acts" {
                @if is_paused { (button(visit, &path("resume"), "main", &says.resume())) }
                @if !limit.name.is_template() {
                    (form(visit, &path("pause"), html! {
                        input name="for" required placeholder="30s" aria-label=(says.pause_for()) title=(says.pause_for());
                    }, &says.pause()))
                }
                (ask_link(visit, &path("delete"), "btn danger", &says.delete()))
            }
        }
        (done(visit, &[
            ("set", says.did_set()), ("paused", says.did_pause()), ("resumed", says.did_resume()),
        ]))
        div class="split" {
            div class="stack" { (permits(visit, says, &limit)) (line(visit, says, &limit)) }
            (settings(visit, says, &limit, &path("set")))
        }
        (last_changes(visit, &format!("limit:{name}")))
        (commands(visit, &by_command(visit, &limit)))
    };
    Sheet::live(name.clone(), body)
}

fn by_command(visit: &Visit, limit: &LimitView) -> Vec<ShownCommand> {
    let (name, set) = (limit.name.to_string(), &limit.settings);
    let or = |value: Option<String>, usual: &str| value.unwrap_or_else(|| usual.to_owned());
    let concurrency = or(set.concurrency.map(|n| n.to_string()), "5");
    let rate = rate_fields::option(set.rate.as_ref());
    let mut words = vec!["limit", "set", &name, "--concurrency", &concurrency];
    words.extend(rate.iter().map(String::as_str));
    vec![
        visit.command(&["limit", &name]),
        visit.command(&words),
        visit.command(&["limit", "pause", &name, "--for", "30s"]),
        visit.command(&["limit", "resume", &name]),
    ]
}

fn permits(visit: &Visit, says: Says, limit: &LimitView) -> Markup {
    let used = limit.in_use + limit.external;
    let most = limit.settings.concurrency.map(u64::from);
    let beside = match most {
        Some(most) => says.in_use_of(grouped(used), grouped(most)),
        None => says.in_use(grouped(used)),
    };
    html! {
        section class="panel" {
            header { h2 { (says.use_of()) ": " (beside) } (limits::legend(visit)) }
            div class="body fields" {
                @if let Some(most) = most { (squares(&limits::parts(limit), most, used >= most)) }
                p class="legend" {
                    @if limit.resting > 0 { span { (says.resting(grouped(limit.resting))) } }
                    @if limit.external > 0 { span { (says.outside(grouped(limit.external))) } }
                    @if limit.over_limit > 0 { span class="failed" { (says.over(grouped(limit.over_limit))) } }
                }
            }
            @if limit.holders.is_empty() { (empty(&says.nobody())) } @else { (holders(visit, says, &limit.holders)) }
        }
    }
}

fn holders(visit: &Visit, says: Says, all: &[Holder]) -> Markup {
    let heads = html! {
        th scope="col" { (says.holder()) }
        th scope="col" { (says.job()) }
        th scope="col" { (says.lease()) }
        th scope="col" class="num" { (says.since()) }
    };
    let rows = html! {
        @for one in all {
            tr {
                th scope="row" class="mono" {
                    a href=(visit.link_with("/leases", &[("worker", &one.holder)])) { (one.holder) }
                }
                td class="mono" {
                    @if let Some(job) = &one.job { a href=(visit.to("jobs", job)) { (job) } }
                }
                @let path = crate::pairs::path(&["leases", &one.lease]);
                td class="mono" {
                    @if visit.may_act(&path) { a href=(visit.link(&path)) { (one.lease) } } @else { (one.lease) }
                }
                td class="num soft" { (ago(visit, one.since)) }
            }
        }
    };
    scroll_table(None, heads, rows)
}

fn line(visit: &Visit, says: Says, limit: &LimitView) -> Markup {
    let row = |(at, one): (usize, &Waiter)| {
        html! {
            tr {
                td class="num tight" { (at + 1) }
                td class="mono" {
                    @match &one.job {
                        Some(job) => a href=(visit.to("jobs", job)) { (job) },
                        None => span class="soft" { (says.caller()) },
                    }
                }
                td {
                    @if let Some(queue) = &one.queue { a href=(visit.to("queues", queue)) { (queue) } }
                }
                td class="num soft" { (ago(visit, one.since)) }
            }
        }
    };
    html! {
        section class="panel" {
            header {
                h2 { (says.line(grouped(limit.waiting))) }
                @if limit.waiting > limit.line.len() as u64 { p { (says.line_what()) } }
            }
            @if limit.line.is_empty() { (empty(&says.no_line())) } @else {
                (scroll_table(None, html! {
                    th scope="col" class="num" { (says.place()) }
                    th scope="col" { (says.job()) }
                    th scope="col" { (says.queue()) }
                    th scope="col" class="num" { (says.since()) }
                }, html! { @for one in limit.line.iter().enumerate() { (row(one)) } }))
            }
        }
    }
}

fn settings(visit: &Visit, says: Says, limit: &LimitView, path: &str) -> Markup {
    let set = &limit.settings;
    let text = |text: String| Some(html! { (text) });
    let reading = limit.gauge.as_ref().and_then(|gauge| gauge.reading.as_ref());
    let failed = reading.filter(|reading| reading.failed_at.is_some());
    html! {
        section class="panel" {
            header { h2 { (says.settings()) } }
            div class="body" {
                dl class="facts" {
                    dt { (says.concurrency()) }
                    dd {
                        @if visit.may_act(path) {
                            (form(visit, path, html! {
                                input name="concurrency" inputmode="numeric" aria-label=(says.concurrency())
                                    value=[set.concurrency] placeholder=(says.no_cap());
                            }, &says.change()))
                        } @else if let Some(concurrency) = set.concurrency { (concurrency) } @else { (says.no_cap()) }
                    }
                    (fact(&says.rate(), set.rate.as_ref().and_then(|rate| text(limits::rate_text(rate)))))
                    (fact(&says.burst(), set.rate.as_ref().and_then(|rate| text(rate.burst.to_string()))))
                    (fact(&says.gap(), set.gap.and_then(|gap| text(gap.to_string()))))
                    (fact(&says.quarantine(), (set.quarantine.us() > 0).then(|| html! { (set.quarantine) })))
                    (fact(&says.paused_until(), limit.paused_until.map(|until| html! { (at(until)) ", " (ago(visit, until)) })))
                    (fact(&says.gauge(), reading.map(|reading| html! {
                        @if let Some(external) = reading.external { (external) }
                        @if let Some(asked) = reading.asked_at { " " span class="soft" { (clock(visit, asked)) } }
                    })))
                    (fact(&says.gauge_failed(), failed.map(|reading| html! {
                        span class="failed" { (reading.error.as_deref().unwrap_or_default()) }
                    })))
                }
                @if visit.may_act(path) { (editor(visit, says, limit, path)) }
            }
        }
    }
}

/// All settings in a form that opens.
fn editor(visit: &Visit, says: Says, limit: &LimitView, path: &str) -> Markup {
    let set = &limit.settings;
    let rest = (set.quarantine.us() > 0).then(|| set.quarantine.to_string());
    html! {
        details class="editor" {
            summary { (says.change_all()) }
            form class="fields" method="post" action=(visit.link(path)) {
                p class="soft" { (says.change_what()) }
                @if limit.template.is_some() { p class="soft" { (says.own_settings()) } }
                label { (says.concurrency())
                    input name="concurrency" inputmode="numeric" value=[set.concurrency] placeholder=(says.no_cap());
                }
                (rate_fields::fields(visit, set.rate.as_ref()))
                label { (says.gap())
                    input name="gap" value=[set.gap.map(|gap| gap.to_string())] placeholder="0s";
                }
                label { (says.quarantine()) input name="quarantine" value=[rest] placeholder="0s"; }
                div { button class="main" { (says.save()) } }
            }
        }
    }
}

fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    back_to(visit, &["limits", visit.name()], &[("did", did)])
}

async fn set(visit: &Visit) -> Result<Drawn, Unanswered> {
    let fields = [
        ("concurrency", Field::NumberOrNull),
        ("gap", Field::TextOrNull),
        ("quarantine", Field::TextOrNull),
    ];
    let mut body = body(visit, &fields);
    rate_fields::say(visit, &mut body);
    let body = Value::Object(body).to_string();
    visit.set(PatchLimit::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "set")
}

async fn pause(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("for", Field::Text)]);
    visit.ask(PauseLimit::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "paused")
}

async fn resume(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(ResumeLimit::of(&visit.names, b"")?).await?;
    back(visit, "resumed")
}

async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let title = says.delete_title(visit.name());
    ask_to_delete(visit, ("limit", "limits"), title, says.delete_what(), says.delete())
}

async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeleteLimit::of(&visit.names, b"")?).await?;
    back_to(visit, &["limits"], &[("did", "deleted")])
}
