//! The judge finds each fault: a judge that cannot fail would prove nothing.

use super::*;
use crate::chaos::records;

/// Judges records of processes that died at 90, and what the store shows: `ID STATE FLOW`, with `!` for a job
/// whose error is that a parent failed.
fn found(lines: &str, store: &str) -> Vec<String> {
    let mut told = Told::default();
    records::file(&mut told, lines, 90);
    let shown = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let flow = (words[2] != "-").then(|| words[2].to_owned());
        let error = (words.len() > 3).then(|| PARENT_FAILED.to_owned());
        (words[0].to_owned(), Shown { state: words[1].parse().unwrap(), flow, error })
    };
    faults(&told, &store.lines().map(shown).collect())
}

/// A parent `a` in flow `f` and its child `b`, both in one push that was answered.
fn family(rule: &str, way: &str) -> String {
    format!("J c a f cancel {way} -\nJ c b f {rule} succeeds a\nC c\n")
}

#[test]
fn a_child_that_runs_after_its_parent_is_no_fault() {
    let runs = "S 10 1 a \nE 20 1 succeeded\nS 20 2 b \nE 30 2 succeeded";
    let store = "a succeeded f\nb succeeded f";
    assert_eq!(found(&(family("cancel", "succeeds") + runs), store), [""; 0]);
}

#[test]
fn a_child_that_ran_early_is_found() {
    for runs in [
        // Before the parent was done.
        "S 10 1 a \nE 20 1 succeeded\nS 19 2 b \nE 30 2 succeeded",
        // After a first attempt, which was not the end of the parent.
        "S 10 1 a \nE 20 1 failed\nS 21 2 b \nE 22 2 succeeded\nS 25 3 a \nE 30 3 succeeded",
        // A first run of the child was early, the second was not.
        "S 5 1 b \nS 10 2 a \nE 20 2 succeeded\nS 20 3 b \nE 30 3 succeeded",
        // The clock says nothing, and the fences do.
        "S 10 2 a \nE 20 2 succeeded\nS 20 1 b \nE 30 1 succeeded",
    ] {
        let found = found(&(family("cancel", "succeeds") + runs), "a succeeded f\nb succeeded f");
        assert_eq!(found, ["b ran before Job(\"a\") had ended"], "{runs}");
    }
}

#[test]
fn a_parent_whose_end_nobody_wrote_down_has_not_ended() {
    for a in ["S 10 1 a ", "S 10 1 a \nE 20 1 stopped"] {
        let runs = format!("{a}\nS 25 2 b \nE 30 2 succeeded");
        let found = found(&(family("cancel", "succeeds") + &runs), "a succeeded f\nb succeeded f");
        let no_end = "a has no last run that wrote that it succeeded";
        assert_eq!(found, [no_end, "b ran before Job(\"a\") had ended"], "{a}");
    }
}

#[test]
fn a_stranded_child_is_found() {
    let runs = "S 10 1 a \nE 20 1 succeeded";
    let found_one = found(&(family("cancel", "succeeds") + runs), "a succeeded f\nb dependent f");
    let stranded = "b is stranded: it is dependent and must be succeeded";
    assert_eq!(found_one, [stranded, "b has no last run that wrote that it succeeded"]);
    let runs = "S 10 1 a \nE 20 1 failed";
    let found_one = found(&(family("cancel", "fails") + runs), "a failed f\nb ready f !");
    assert_eq!(found_one, ["b is stranded: it is ready and must be cancelled"]);
}

#[test]
fn a_child_of_a_failed_parent_must_follow_its_own_rule() {
    let failed = "S 10 1 a \nE 20 1 failed";
    let ran = format!("{failed}\nS 20 2 b \nE 30 2 succeeded");
    let (cancelled, succeeded) = ("a failed f\nb cancelled f !", "a failed f\nb succeeded f");
    for (rule, runs, store, faults) in [
        ("cancel", failed, cancelled, &[][..]),
        ("run", &ran, succeeded, &[]),
        ("cancel", &ran, cancelled, &["b ran although a parent cancels it"]),
        (
            "run",
            failed,
            cancelled,
            &[
                "b is cancelled and must be succeeded",
                "b has no last run that wrote that it succeeded",
            ],
        ),
    ] {
        assert_eq!(found(&(family(rule, "fails") + runs), store), faults, "{rule}: {store}");
    }
}

#[test]
fn a_cancelled_parent_ended_no_sooner_than_the_one_that_failed() {
    let plans = "J c a f cancel fails -\nJ c b f cancel succeeds a\nJ c d f run succeeds b\n";
    let store = "a failed f\nb cancelled f !\nd succeeded f";
    for (from, faults) in [(20, &[][..]), (19, &["d ran before Job(\"b\") had ended"])] {
        let runs = format!("S 10 1 a \nE 20 1 failed\nS {from} 2 d \nE 30 2 succeeded");
        assert_eq!(found(&format!("{plans}{runs}"), store), faults);
    }
}

#[test]
fn a_waiter_for_a_flow_waits_for_each_member() {
    let plans = "J c a f cancel succeeds -\nJ c b f cancel succeeds -\nJ c w - run succeeds ~f\n";
    let store = "a succeeded f\nb succeeded f\nw succeeded -";
    for (from, faults) in [(40, &[][..]), (39, &["w ran before Flow(\"f\") had ended"])] {
        let runs = "S 10 1 a \nE 20 1 succeeded\nS 10 2 b \nE 40 2 succeeded";
        let waiter = format!("S {from} 3 w \nE 50 3 succeeded");
        assert_eq!(found(&format!("{plans}{runs}\n{waiter}"), store), faults);
    }
}

#[test]
fn a_push_is_there_as_a_whole_and_if_it_was_answered() {
    let answered = family("cancel", "succeeds");
    let unanswered = answered.replace("C c\n", "");
    assert_eq!(found(&unanswered, ""), [""; 0]);
    assert_eq!(found(&answered, ""), ["of the push c these are lost: [\"a\", \"b\"]"]);
    let runs = "S 10 1 a \nE 20 1 succeeded";
    let half = found(&(unanswered + runs), "a succeeded f");
    assert_eq!(half, ["of the push c these are lost: [\"b\"]"]);
    assert_eq!(found("", "x succeeded f"), ["nobody pushed x"]);
}
