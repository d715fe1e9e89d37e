//! `tenure audit`: do the cached counts agree with the leases?

use tenure::Client;
use tenure_core::requests::Audit;

use crate::args::AuditArgs;
use crate::exit::{Failure, NO};
use crate::output::Output;

/// Runs the check; a fault is exit 1.
pub async fn run(client: &Client, out: Output, args: AuditArgs) -> Result<(), Failure> {
    let audit = client.run(Audit { deep: args.deep }).await?;
    out.answer(&audit, |audit| {
        let mut text = String::new();
        for fault in &audit.faults {
            text.push_str(&format!("{}\n", crate::output::printable(fault)));
        }
        let end = if audit.ok { "all is well" } else { "something is wrong" };
        text + &format!("{} things checked: {end}\n", audit.checked)
    })?;
    if audit.ok {
        return Ok(());
    }
    Err(Failure::new(NO, format!("the audit found {} faults", audit.faults.len())).hint(
        "rows called unreadable were changed on the disk: --deep finds more damage; any other \
         fault is a bug: please report it with the lines above",
    ))
}
