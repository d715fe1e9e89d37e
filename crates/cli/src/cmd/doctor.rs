//! `tenure doctor`: is this server, folder or Redis as it should be, and what to change?
//!
//! It asks and measures, and removes everything that it tried out. It never opens a folder as a
//! store.

mod facts;
mod finding;
mod folder;
mod listener;
mod rules;
pub mod server;
mod shared_store;
mod token_files;

use serde::Serialize;
use tenure::remote::Callee;
use tenure::url::StoreUrl;

use self::finding::{Examined, Finding, Severity};
use crate::args::Global;
use crate::args::doctor::DoctorArgs;
use crate::exit::{Failure, NO, UNAVAILABLE};
use crate::output::clock::sentence;
use crate::output::page::Page;
use crate::output::prose::wrapped;
use crate::output::{Output, printable, width};

/// The longest name of a check, so that all blocks of lines stand in the same columns.
const CHECK_WIDTH: usize = "persistence".len();
/// The severity, the check, and the gaps behind each.
const MARGIN: usize = "wrong".len() + CHECK_WIDTH + 4;

#[derive(Serialize)]
struct DoctorReport<'a> {
    ok: bool,
    store: &'a str,
    findings: &'a [Finding],
}

/// Looks, and prints the findings; something wrong is exit 1.
pub async fn run(out: Output, global: &Global, args: DoctorArgs) -> Result<(), Failure> {
    let address = args.address.as_deref().unwrap_or(&global.url);
    let url: StoreUrl = address.parse().map_err(|why| {
        Failure::usage(format!("doctor: {why}"))
            .hint("name a server, a folder or a Redis: tenure doctor redis://HOST:6379")
    })?;
    let several = match url {
        StoreUrl::Servers(_) | StoreUrl::Redis(_) => Callee::of(&url),
        _ => None,
    };
    if let Some(callee) = several {
        let store = url.to_string();
        let is_redis = matches!(url, StoreUrl::Redis(_));
        let namespace = &global.namespace;
        let examined = server::each_examined(&callee, store.clone(), namespace, is_redis).await;
        let examined = match url {
            StoreUrl::Redis(address) => {
                let of_store = shared_store::findings(address).await?;
                let mut examined = match examined {
                    Ok(examined) => examined,
                    // Without a server the Redis is looked at all the same.
                    Err(no) if no.code == UNAVAILABLE => {
                        Examined { what: "store", store, servers: Vec::new(), findings: Vec::new() }
                    }
                    Err(no) => return Err(no),
                };
                examined.findings.extend(of_store);
                examined
            }
            _ => examined?,
        };
        return tell(out, &examined);
    }
    let examined = match url {
        StoreUrl::Server(server) => server::examined(&server, &global.namespace, false).await?,
        StoreUrl::File(folder) => folder::examined(&folder)?,
        StoreUrl::Memory | StoreUrl::Servers(_) | StoreUrl::Redis(_) => {
            return Err(Failure::usage("doctor: memory: has nothing to check")
                .hint("name a server, a folder or a Redis: tenure doctor redis://HOST:6379"));
        }
    };
    tell(out, &examined)
}

fn tell(out: Output, examined: &Examined) -> Result<(), Failure> {
    let Examined { what, store, servers, findings } = examined;
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (wrong, looks) = (count(Severity::Wrong), count(Severity::Look));
    out.answer(&DoctorReport { ok: wrong == 0, store, findings }, |report| {
        let mut text = format!("{}\n", printable(report.store));
        text.push_str(&page(findings.iter().filter(|one| one.server.is_none())));
        for server in servers {
            text.push_str(&format!("\n{}\n", printable(server)));
            let of_server = |one: &&Finding| one.server.as_deref() == Some(server);
            text.push_str(&page(findings.iter().filter(of_server)));
        }
        text.push_str(match (wrong, looks) {
            (0, 0) => "all is well\n",
            (0, _) => "nothing is wrong; see the checks marked `look`\n",
            _ => "",
        });
        text
    })?;
    if wrong == 0 {
        return Ok(());
    }
    let things = if wrong == 1 { "one thing is" } else { &format!("{wrong} things are") };
    Err(Failure::new(NO, format!("{things} wrong with this {what}"))
        .hint("apply the fixes of the report, and run doctor again"))
}

fn page<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let width = width::of_prose().saturating_sub(MARGIN);
    let mut page = Page::default();
    for Finding { check, level, found, fix, .. } in findings {
        let fix =
            fix.as_ref().map(|fix| format!("\n{}", wrapped(&format!("-> {fix}"), width, "   ")));
        page.field(
            &format!("{:<5}  {check:<CHECK_WIDTH$}", level.as_str()),
            wrapped(&sentence(found), width, "") + &fix.unwrap_or_default(),
        );
    }
    page.render()
}
