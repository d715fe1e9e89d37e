//! Why a request is not granted, in one sentence, for a hint and for people who wait.
//!
//! It only words the engine's reasons; `tenure explain` shows all of them.

use tenure::ids::holder_shown;
use tenure_core::lease::Reason;
use tenure_core::time::Moment;

use crate::output::table::when;

/// One sentence without its end; empty if the engine gave no reason.
pub fn sentence(reasons: &[Reason], now: Moment) -> String {
    let clauses: Vec<String> = reasons.iter().map(|reason| clause(reason, now)).collect();
    clauses.join("; ")
}

fn clause(reason: &Reason, now: Moment) -> String {
    let mut text = crate::output::clock::sentence(&reason.detail);
    if text.is_empty() {
        // Another version answers. The kind and the name say the least that is known.
        text = super::super::job::json(&reason.kind).trim_matches('"').replace('_', " ");
        if let Some(name) = &reason.name {
            text += &format!(" {name:?}");
        }
    }
    if let Some(first) = reason.holders.first() {
        text += &format!(
            ", held by {} for {}",
            holder_shown(&first.holder),
            tenure_core::count::rough(now.since(first.since))
        );
        if let Some(job) = &first.job {
            text += &format!(" (job {job})");
        }
        match reason.holders.len() - 1 {
            0 => {}
            1 => text += " and one more",
            more => text += &format!(" and {more} more"),
        }
    }
    if let Some(at) = reason.earliest.filter(|at| *at > now) {
        text += &format!(", no sooner than {}", when(at, now));
    }
    if let Some(before) = reason.position.filter(|position| *position > 1) {
        text += &format!(", number {before} in its line");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::lease::ReasonKind;
    use tenure_core::settings::Holder;
    use tenure_core::time::Span;

    fn now() -> Moment {
        Moment::from_us(1_800_000_000_000_000)
    }

    fn taken(holders: usize) -> Reason {
        let holder = |n| Holder {
            lease: format!("L{n}"),
            holder: format!("w{n}"),
            job: None,
            since: now().minus(Span::from_s(72)),
        };
        Reason {
            kind: ReasonKind::Limit,
            name: Some("lock:x".to_owned()),
            in_use: Some(1),
            capacity: Some(1),
            holders: (1..=holders).map(holder).collect(),
            position: None,
            ahead: None,
            earliest: None,
            detail: "1 of 1 permit of \"lock:x\" is in use".to_owned(),
        }
    }

    fn held_by(holder: &str) -> Reason {
        let mut reason = taken(1);
        reason.holders[0].holder = holder.to_owned();
        reason
    }

    #[test]
    fn a_reason_is_a_clause_that_says_nothing_twice() {
        let in_use = "1 of 1 permit of \"lock:x\" is in use";
        let soon = Some(now().plus(Span::from_s(5)));
        for (reason, want) in [
            (taken(0), in_use.to_owned()),
            (held_by("web-1:4711:0123456789ab"), format!("{in_use}, held by web-1:4711 for 1m12s")),
            (taken(1), format!("{in_use}, held by w1 for 1m12s")),
            (taken(2), format!("{in_use}, held by w1 for 1m12s and one more")),
            (taken(4), format!("{in_use}, held by w1 for 1m12s and 3 more")),
            (Reason { earliest: soon, ..taken(0) }, format!("{in_use}, no sooner than in 5s")),
            (Reason { position: Some(1), ..taken(0) }, in_use.to_owned()),
            (Reason { position: Some(3), ..taken(0) }, format!("{in_use}, number 3 in its line")),
            (Reason { detail: String::new(), ..taken(0) }, "limit \"lock:x\"".to_owned()),
        ] {
            assert_eq!(sentence(&[reason], now()), want);
        }
        assert_eq!(sentence(&[], now()), "");
        assert_eq!(sentence(&[taken(0), taken(0)], now()), format!("{in_use}; {in_use}"));
    }
}
