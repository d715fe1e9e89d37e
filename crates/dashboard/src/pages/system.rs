//! The system: the store, its health, and the audit of its content.

mod servers;

use maud::html;
use tenure_core::count::grouped;
use tenure_core::requests::{Audit, GetStats};
use tenure_engine_api::Engine;

use super::{PageRow, Section, action, draw};
use crate::attention;
use crate::language::sentences;
use crate::show::{button, command, commands, fact};
use crate::visit::{Drawn, Sheet, Unanswered, Visit, overview_of};

sentences! { Says;
    title: "System", "系统";
    store: "Store", "存储";
    kind: "Kind", "类型";
    bytes: "Bytes", "字节";
    health: "Health", "健康";
    well: "well", "正常";
    notice: "Notice", "提示";
    namespace: "Namespace", "命名空间";
    version: "Version", "版本";
    leases: "Leases", "租约";
    waiters: "Calls that wait for a result", "等待结果的调用";
    events: "Events kept", "保留的事件";
    event_bytes(n): "{n} bytes", "{n} 字节";
    audit: "Audit", "审计";
    audit_what: "Checks that the counts of the store agree with its content. On a large store this takes a moment.",
        "检查存储的计数与其内容是否一致。数据较多时需要片刻。";
    run: "Run the audit", "运行审计";
    audit_ok(n): "Nothing is wrong: {n} things were checked.", "没有问题：已检查 {n} 项。";
    audit_bad(n): "Faults found: {n}.", "发现 {n} 处问题。";
    doctor: "To check the machine, the settings and a Redis, run tenure doctor on the command line: it checks the machine on which it runs.",
        "tenure doctor 对机器、设置和 Redis 的检查仅可在命令行中查看：它检查的是运行它的机器。";
    called: "Namespaces called on this server", "在本服务器上被调用过的命名空间";
    others: "The API does not list the other namespaces. Open a namespace with the field on the left, or with ?ns=NAME.",
        "API 不列出其他命名空间。可通过左侧输入框或 ?ns=NAME 前往命名空间。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::System, "/system").shows(draw!(show)),
    PageRow::new(Section::System, "/system/audit").acts(action!(Audit, audit)),
];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let stats = visit.ask(GetStats).await?;
    let found = attention::look(visit, &stats).await?;
    let health = visit.engine.health();
    let events = &stats.events;
    let mut called = visit.history.as_ref().map(|history| history.namespaces()).unwrap_or_default();
    called.retain(|namespace| visit.engine.caller().grants().may_enter(namespace).is_ok());
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        (attention::panel(visit, &found))
        (servers::panel(visit.tongue, &visit.engine.servers()))
        section class="panel" {
            header { h2 { (says.store()) } }
            div class="body" {
                dl class="facts" {
                    dt { (says.kind()) } dd { (stats.store.kind) }
                    dt { (says.bytes()) } dd { (grouped(stats.store.bytes)) }
                    dt { (says.health()) }
                    dd {
                        @match &health.degraded {
                            None => span class="state succeeded" { (says.well()) },
                            Some(why) => span class="state failed" { (why) },
                        }
                    }
                    (fact(&says.notice(), visit.engine.notice().map(|notice| html! { (notice) })))
                    dt { (says.namespace()) } dd { (visit.namespace) }
                    @if !called.is_empty() {
                        dt { (says.called()) }
                        dd {
                            @for (at, namespace) in called.iter().enumerate() {
                                @if at > 0 { ", " }
                                a href=(overview_of(namespace)) { (namespace) }
                            }
                        }
                    }
                    dt { (says.version()) } dd { (env!("CARGO_PKG_VERSION")) }
                    dt { (says.leases()) } dd { (grouped(stats.leases)) }
                    dt { (says.waiters()) } dd { (grouped(stats.result_waiters)) }
                    (fact(&says.events(), events.first.zip(events.last).map(|(first, last)| html! {
                        a href=(visit.link("/events")) { (first) " – " (last) } ", "
                        (says.event_bytes(grouped(events.bytes)))
                    })))
                }
            }
        }
        section class="panel" {
            header { h2 { (says.audit()) } }
            div class="body fields" {
                p class="soft" { (says.audit_what()) }
                (button(visit, "/system/audit", "", &says.run()))
                p class="faint" { (says.doctor()) }
                p class="faint" { (says.others()) }
            }
        }
        (commands(visit, &[
            visit.command(&["stats"]), visit.command(&["audit"]), visit.command(&["doctor"]),
        ]))
    };
    Sheet::live(says.title(), body)
}

async fn audit(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let audited = visit.ask(Audit { deep: false }).await?;
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/system")) { (says.title()) } }
                h1 { (says.audit()) }
            }
        }
        @if audited.ok {
            p class="notice" role="status" { (says.audit_ok(grouped(audited.checked))) }
        } @else {
            p class="notice bad" role="alert" { (says.audit_bad(audited.faults.len())) }
            section class="panel" {
                ul class="calls" {
                    @for fault in audited.faults.iter().take(100) { li class="bad" { i {} span { (fault) } } }
                }
            }
        }
        (command(visit, &visit.command(&["audit"])))
    };
    Sheet::still(says.audit(), body)
}
