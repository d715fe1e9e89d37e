//! The servers of a shared store: the leader, the lag of the others, and those that this server cannot reach.

use maud::{Markup, html};
use tenure_engine_api::SharedServer;

use crate::language::{Tongue, sentences};
use crate::show::{number_cell, scroll_table};

sentences! { ServerWords;
    title: "Servers of this store", "此存储的服务器";
    server: "Server", "服务器";
    role: "Role", "角色";
    leader: "leader", "主节点";
    follower: "follower", "从节点";
    here: "this server", "本服务器";
    behind: "Entries behind", "落后条目";
    reach: "From here", "从本服务器";
    reached: "reachable", "可达";
}

/// Empty where only one server has the store.
pub(super) fn panel(tongue: Tongue, servers: &[SharedServer]) -> Markup {
    let words = ServerWords(tongue);
    html! {
        @if !servers.is_empty() {
            section class="panel" {
                header { h2 { (words.title()) } }
                (scroll_table(None, html! {
                    th scope="col" { (words.server()) }
                    th scope="col" { (words.role()) }
                    th scope="col" class="num" { (words.behind()) }
                    th scope="col" { (words.reach()) }
                }, html! { @for server in servers { (row(words, server)) } }))
            }
        }
    }
}

fn row(words: ServerWords, server: &SharedServer) -> Markup {
    let (class, role) = if server.is_leader {
        ("succeeded", words.leader())
    } else {
        ("running", words.follower())
    };
    html! {
        tr {
            th scope="row" class="mono" { (server.url) }
            td { span class={ "state " (class) } { (role) } }
            (number_cell(server.behind))
            td {
                @match &server.unreachable {
                    _ if server.is_self => span class="soft" { (words.here()) },
                    None => (words.reached()),
                    Some(why) => span class="state failed" { (why) },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> SharedServer {
        SharedServer {
            url: format!("http://127.0.0.1:{port}"),
            is_self: false,
            is_leader: false,
            behind: 0,
            unreachable: None,
        }
    }

    #[test]
    fn leader_lag_and_unreachable_servers_are_shown() {
        let servers = [
            SharedServer { is_self: true, behind: 2_054, ..server(7401) },
            SharedServer { is_leader: true, ..server(7402) },
            SharedServer { unreachable: Some("connection refused".to_owned()), ..server(7403) },
        ];
        let page = panel(Tongue::English, &servers).into_string();
        let rows: Vec<&str> = page.split("<tr>").skip(2).collect();
        for (row, parts) in rows.iter().zip([
            ["7401", "follower", "2,054", "this server"],
            ["7402", "leader", ">0<", "reachable"],
            ["7403", "follower", ">0<", "connection refused"],
        ]) {
            assert!(parts.iter().all(|part| row.contains(part)), "{row}");
        }
        assert_eq!(rows.len(), 3, "{page}");
        assert_eq!(panel(Tongue::English, &[]).into_string(), "");
    }
}
