//! `tenure leases`: live leases, and taking one back by force.

use tenure::Client;
use tenure_core::bounds::LIST_MAX;
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{ForceLease, ListLeases, Page};

use crate::args::leases::{LeasesAction, LeasesArgs};
use crate::cmd::holders::Holders;
use crate::cmd::next_page;
use crate::exit::{Failure, NO};
use crate::output::Output;
use crate::output::clock;
use crate::output::page::Page as Fields;
use crate::output::table::{CUT, Table, or_dash, when};

/// Lists them, shows one, or takes one back.
pub async fn run(client: &Client, out: Output, args: LeasesArgs) -> Result<(), Failure> {
    if let Some(LeasesAction::Force { lease }) = args.action {
        // As a table shows it; a whole id is looked for by nobody but the store.
        let lease = if lease.contains(CUT) { find(client, &lease).await?.lease } else { lease };
        client.run(ForceLease { lease: lease.clone() }).await?;
        return out.done(&format!("{lease} was taken back"));
    }
    if let Some(lease) = args.lease {
        let lease = find(client, &lease).await?;
        let holders = holders(client, out, std::slice::from_ref(&lease)).await;
        return out.answer(&lease, |lease| one(lease, &holders));
    }
    let request = ListLeases {
        queue: args.queue,
        limit: args.limit,
        pool: args.pool,
        worker: args.worker,
        page: args.page.page(),
    };
    let listed = client.run(request).await?;
    let holders = holders(client, out, &listed.items).await;
    next_page::answer(out, &listed, |leases| people(leases, &holders))
}

async fn holders(client: &Client, out: Output, leases: &[LeaseSummary]) -> Holders {
    Holders::ask(client, out, leases.iter().map(|lease| lease.holder.as_str())).await
}

/// The one lease of this id: whole, its first letters, or as a table cuts it.
async fn find(client: &Client, text: &str) -> Result<LeaseSummary, Failure> {
    let mut found: Option<LeaseSummary> = None;
    let mut cursor = None;
    loop {
        let page = Page { max: LIST_MAX, cursor };
        let listed = client.run(ListLeases { page, ..ListLeases::default() }).await?;
        for lease in listed.items {
            if lease.lease == text {
                return Ok(lease);
            }
            if !is_meant(&lease.lease, text) {
                continue;
            }
            if found.replace(lease).is_some() {
                return Err(Failure::usage(format!("several leases match '{text}'")).hint(
                    "give more letters of the id, or the whole id (`tenure --json leases`)",
                ));
            }
        }
        cursor = listed.next;
        if cursor.is_none() {
            break;
        }
    }
    found.ok_or_else(|| {
        Failure::new(NO, format!("there is no lease '{text}'"))
            .hint("it may have ended; `tenure leases` lists the live leases")
    })
}

fn is_meant(lease: &str, text: &str) -> bool {
    let (begin, end) = text.split_once(CUT).unwrap_or((text, ""));
    !begin.is_empty() && lease.starts_with(begin) && lease.ends_with(end)
}

fn held(lease: &LeaseSummary) -> String {
    let limits = lease.limits.iter().map(ToString::to_string);
    let resources = lease.resources.iter().map(|held| format!("{}:{}", held.pool, held.id));
    limits.chain(resources).collect::<Vec<_>>().join(" ")
}

fn people(leases: &[LeaseSummary], holders: &Holders) -> String {
    let now = clock::now();
    let head = ["HOLDER", "SINCE", "EXPIRES", "QUEUE", "JOB", "HOLDS", "LEASE"];
    let mut table = Table::new(&head).ids(&["LEASE"]);
    for lease in leases {
        table.row([
            holders.name(&lease.holder).to_owned(),
            when(lease.granted_at, now),
            when(lease.expires_at, now),
            or_dash(lease.queue.as_ref()),
            or_dash(lease.job.as_ref()),
            held(lease),
            lease.lease.clone(),
        ]);
    }
    table.render("no leases")
}

fn one(lease: &LeaseSummary, holders: &Holders) -> String {
    let now = clock::now();
    let (name, id) = (holders.name(&lease.holder), &lease.holder);
    let mut fields = Fields::default();
    fields
        .field("lease", &lease.lease)
        .field("holder", name)
        .maybe("its id", Some(id).filter(|id| *id != name))
        .field("since", when(lease.granted_at, now))
        .field("expires", when(lease.expires_at, now))
        .maybe("queue", lease.queue.as_ref())
        .maybe("job", lease.job.as_ref())
        .maybe("holds", Some(held(lease)).filter(|held| !held.is_empty()));
    fields.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_meant_by_its_id_its_begin_or_as_a_table_cuts_it() {
        for (said, is) in [
            ("l_abcdef", true),
            ("l_ab", true),
            ("l_…ef", true),
            ("l_…eg", false),
            ("x", false),
            ("", false),
            ("…f", false),
        ] {
            assert_eq!(is_meant("l_abcdef", said), is, "{said}");
        }
    }
}
