//! `tenure leases`: live leases, and taking one back by force.

use tenure::Client;
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{ForceLease, ListLeases};

use crate::args::leases::{LeasesAction, LeasesArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::table::{Table, or_dash, when};

/// Lists them, or takes one back.
pub async fn run(client: &Client, out: Output, args: LeasesArgs) -> Result<(), Failure> {
    if let Some(LeasesAction::Force { lease }) = args.action {
        client.run(ForceLease { lease: lease.clone() }).await?;
        return out.done(&format!("{lease} was taken back"));
    }
    let request = ListLeases {
        queue: args.queue,
        limit: args.limit,
        pool: args.pool,
        worker: args.worker,
        page: args.page.page(),
    };
    let listed = client.run(request).await?;
    out.answer(&listed, |listed| people(&listed.items))?;
    super::tell_more(out, listed.next.as_deref(), listed.partial);
    Ok(())
}

fn people(leases: &[LeaseSummary]) -> String {
    let now = super::now();
    let mut table = Table::new(&["HOLDER", "SINCE", "EXPIRES", "QUEUE", "JOB", "HOLDS", "LEASE"]);
    for lease in leases {
        let limits = lease.limits.iter().map(ToString::to_string);
        let resources = lease.resources.iter().map(|held| format!("{}:{}", held.pool, held.id));
        table.row([
            lease.holder.clone(),
            when(lease.granted_at, now),
            when(lease.expires_at, now),
            or_dash(lease.queue.as_ref()),
            or_dash(lease.job.as_ref()),
            limits.chain(resources).collect::<Vec<_>>().join(" "),
            lease.lease.clone(),
        ]);
    }
    table.render("no leases")
}
