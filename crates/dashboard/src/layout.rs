//! The frame of all pages: the navigation, the namespace, the keys; and the pages without a frame.

use maud::{DOCTYPE, Markup, html};
use tenure_core::count::grouped;
use tenure_core::requests::Stats;
use tenure_engine_api::Fault;

use crate::assets;
use crate::language::{Tongue, sentences};
use crate::pages::{Section, find};
use crate::visit::{Sheet, Unanswered, Visit};

sentences! { FrameWords;
    skip: "Skip to content", "跳到正文";
    pages: "Pages", "页面";
    work: "Work", "任务";
    shared: "Shared", "共享资源";
    service: "Service", "服务";
    overview: "Overview", "总览";
    queues: "Queues", "队列";
    jobs: "Jobs", "任务列表";
    failures: "Failures", "失败";
    flows: "Flows", "流程";
    schedules: "Schedules", "定时";
    limits: "Limits", "限额";
    pools: "Pools", "资源池";
    leases: "Leases", "租约";
    workers: "Workers", "工作进程";
    events: "Events", "事件";
    trail: "Who did what", "操作记录";
    system: "System", "系统";
    find: "Find jobs", "查找任务";
    namespace: "Namespace", "命名空间";
    go: "Go", "前往";
    live_on: "Live", "实时";
    live_off: "Connecting", "连接中";
    live_paused: "Paused", "已暂停";
    log_out: "Log out", "退出登录";
    version(version): "version {version}", "版本 {version}";
    keys: "Keys", "快捷键";
    key_find: "find jobs", "查找任务";
    key_pause: "pause or resume live updates", "暂停或继续实时更新";
    key_help: "show these keys", "显示快捷键";
    close: "Close", "关闭";
    log_in: "Log in", "登录";
    token: "Token", "令牌";
    token_wrong: "That is not the token of this server.", "这不是此服务器的令牌。";
    token_where: "The server gets its token from TENURE_TOKEN, --token-file or --token-command.",
        "令牌即启动服务器时使用的令牌：TENURE_TOKEN、--token-file 或 --token-command。";
    no_page: "There is no such page", "没有这个页面";
    no_page_what: "There is no page at this address.", "此地址下没有内容。";
    refused: "The request was refused", "请求被拒绝";
    fault: "The store does not answer", "存储没有响应";
    fault_unknown: "The change may have been made: check before you repeat it.", "操作可能已经生效：重试前请先查看。";
    fault_nothing: "Nothing was changed. Try again in a moment.", "未做任何更改，请稍后重试。";
    home: "To the overview", "返回总览";
    foreign_form: "This form did not come from a page of this server",
        "此表单不是来自本服务器的页面";
    foreign_form_what: "Open the page again and use its button. Nothing was changed.",
        "请重新打开页面并使用其中的按钮。未做任何更改。";
}

const LOGO: &str = r#"<svg viewBox="0 0 20 20" aria-hidden="true" focusable="false"><rect x="1" y="1" width="18" height="18" rx="5" fill="currentColor" opacity="0.18"/><path d="M5.5 7h9M10 7v7.5" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" fill="none"/></svg>"#;

/// The navigation: a section, its path, the key that goes there.
const LINKS: [(Section, &str, &str); 13] = [
    (Section::Overview, "/", "o"),
    (Section::Queues, "/queues", "q"),
    (Section::Jobs, "/jobs", "j"),
    (Section::Failures, "/failures", "f"),
    (Section::Flows, "/flows", "w"),
    (Section::Schedules, "/schedules", "s"),
    (Section::Limits, "/limits", "l"),
    (Section::Pools, "/pools", "p"),
    (Section::Leases, "/leases", "e"),
    (Section::Workers, "/workers", "k"),
    (Section::Events, "/events", "v"),
    (Section::Trail, "/trail", "t"),
    (Section::System, "/system", "y"),
];

/// The sections that the visitor may look at.
fn links(visit: &Visit) -> impl Iterator<Item = (Section, &'static str, &'static str)> {
    let may_see_trail = visit.may_see_trail();
    LINKS.into_iter().filter(move |(section, path, _)| {
        find(path).is_some() && (*section != Section::Trail || may_see_trail)
    })
}

fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) " · Tenure" }
        link rel="icon" href=(assets::icon().path) type="image/svg+xml";
        link rel="stylesheet" href=(assets::style().path);
        script src=(assets::script().path) defer {}
    }
}

fn section_name(section: Section, words: FrameWords) -> String {
    match section {
        Section::Overview => words.overview(),
        Section::Queues => words.queues(),
        Section::Jobs => words.jobs(),
        Section::Failures => words.failures(),
        Section::Flows => words.flows(),
        Section::Schedules => words.schedules(),
        Section::Limits => words.limits(),
        Section::Pools => words.pools(),
        Section::Leases => words.leases(),
        Section::Workers => words.workers(),
        Section::Events => words.events(),
        Section::Trail => words.trail(),
        Section::System => words.system(),
    }
}

/// The number beside a section, if the totals of the namespace have one.
fn count(section: Section, stats: &Stats) -> Option<u64> {
    match section {
        Section::Queues => Some(stats.queues.len() as u64),
        Section::Jobs => Some(stats.jobs.values().sum()),
        Section::Failures => stats.jobs.get(&tenure_core::job::JobState::Failed).copied(),
        Section::Flows => Some(stats.flows),
        Section::Schedules => Some(stats.schedules.count),
        Section::Leases => Some(stats.leases),
        _ => None,
    }
    .filter(|count| *count > 0)
}

fn navigation(visit: &Visit, here: Section, stats: Option<&Stats>) -> Markup {
    let words = FrameWords(visit.tongue);
    html! {
        nav class="nav" id="nav" aria-label=(words.pages()) {
            @for (section, path, key) in links(visit) {
                @match section {
                    Section::Queues => span class="group" { (words.work()) },
                    Section::Limits => span class="group" { (words.shared()) },
                    Section::Workers => span class="group" { (words.service()) },
                    _ => {},
                }
                a href=(visit.link(path)) data-key=(key)
                    aria-current=[(section == here).then_some("page")] {
                    (section_name(section, words))
                    @if let Some(n) = stats.and_then(|stats| count(section, stats)) {
                        span class="count" { (grouped(n)) }
                    }
                }
            }
        }
    }
}

fn keys(visit: &Visit) -> Markup {
    let words = FrameWords(visit.tongue);
    html! {
        dialog id="help" aria-labelledby="help-title" {
            form method="dialog" class="fields" {
                h2 id="help-title" { (words.keys()) }
                dl class="facts" {
                    dt { kbd { "/" } } dd { (words.key_find()) }
                    dt { kbd { "p" } } dd { (words.key_pause()) }
                    dt { kbd { "?" } } dd { (words.key_help()) }
                }
                dl class="facts keys" {
                    @for (section, _, key) in links(visit) {
                        div { dt { kbd { "g" } " " kbd { (key) } } dd { (section_name(section, words)) } }
                    }
                }
                div { button { (words.close()) } }
            }
        }
    }
}

/// A page as a browser gets it. `stats`: the totals of the namespace, if the engine answered.
pub(crate) fn page(visit: &Visit, here: Section, sheet: &Sheet, stats: Option<&Stats>) -> Markup {
    let words = FrameWords(visit.tongue);
    let live = sheet.is_live.then(|| visit.link("/live"));
    html! {
        (DOCTYPE)
        html lang=(visit.tongue.code()) {
            head { (head(&sheet.title)) }
            body data-live=[live] data-live-on=(words.live_on()) data-live-off=(words.live_off())
                data-live-paused=(words.live_paused()) {
                a class="skip" href="#main" { (words.skip()) }
                header class="side" {
                    a class="brand" href=(visit.link("/")) { (maud::PreEscaped(LOGO)) "Tenure" }
                    form class="search" action="/jobs" role="search" {
                        @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
                        input type="search" name="q" placeholder=(words.find()) aria-label=(words.find());
                    }
                    (navigation(visit, here, stats))
                    (foot(visit, stats))
                }
                main id="main" tabindex="-1" { (sheet.body) }
                (keys(visit))
            }
        }
    }
}

fn foot(visit: &Visit, stats: Option<&Stats>) -> Markup {
    let words = FrameWords(visit.tongue);
    html! {
        div class="foot" {
            button class="live" type="button" hidden { (words.live_off()) }
            form action="/" {
                input name="ns" value=(visit.namespace.as_str()) aria-label=(words.namespace())
                    maxlength="63" pattern="[a-z0-9][a-z0-9\\-]*";
                button class="small" { (words.go()) }
            }
            @if visit.logged_in {
                span { (words.token()) " " span class="mono" { (visit.caller()) } }
                form method="post" action="/logout" { button class="small" { (words.log_out()) } }
            }
            span {
                @if let Some(stats) = stats { (stats.store.kind) " · " }
                (words.version(env!("CARGO_PKG_VERSION")))
            }
        }
    }
}

/// The page that asks for the token. `is_wrong`: a wrong token was shown.
pub(crate) fn login(tongue: Tongue, to: &str, is_wrong: bool) -> Markup {
    let words = FrameWords(tongue);
    html! {
        (DOCTYPE)
        html lang=(tongue.code()) {
            head { (head(&words.log_in())) }
            body class="bare" {
                main id="main" {
                    section class="panel narrow" {
                        header { h1 { (words.log_in()) } }
                        div class="body" {
                            form class="fields" method="post" action="/login" {
                                input type="hidden" name="to" value=(to);
                                @if is_wrong { p class="notice bad" role="alert" { (words.token_wrong()) } }
                                label { (words.token())
                                    input type="password" name="token" required autofocus
                                        autocomplete="current-password";
                                }
                                div { button class="main" { (words.log_in()) } }
                                p class="faint" { (words.token_where()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The page for a request without an answer.
pub(crate) fn stopped(visit: &Visit, stop: &Unanswered) -> Sheet {
    let words = FrameWords(visit.tongue);
    let (title, says) = match stop {
        Unanswered::NoPage => (words.no_page(), vec![words.no_page_what()]),
        Unanswered::Refused(no) => (words.refused(), vec![no.detail.clone(), no.hint.clone()]),
        Unanswered::Fault(fault @ Fault::Unknown(_)) => {
            (words.fault(), vec![fault.to_string(), words.fault_unknown()])
        }
        Unanswered::Fault(fault) => (words.fault(), vec![fault.to_string(), words.fault_nothing()]),
    };
    told(visit, title, &says)
}

/// The page for a form that another site sent.
pub(crate) fn foreign_form(visit: &Visit) -> Sheet {
    let words = FrameWords(visit.tongue);
    told(visit, words.foreign_form(), &[words.foreign_form_what()])
}

fn told(visit: &Visit, title: String, says: &[String]) -> Sheet {
    let body = html! {
        section class="panel narrow" {
            header { h1 { (title) } }
            div class="body fields" {
                @for says in says.iter().filter(|says| !says.is_empty()) { p { (says) } }
                p { a href=(visit.link("/")) { (FrameWords(visit.tongue).home()) } }
            }
        }
    };
    Sheet { title, body, is_live: false }
}
