//! The functions of the library that this process calls: one for each operation, under its name,
//! and those that are no operation of anybody outside.
//!
//! A call names its function by one of these, so that what the call carries along and what reading its answer takes is
//! said in one place.

use tenure_core::requests::{Carries, Operation};

/// A function of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Function {
    /// Its name in the library.
    pub name: &'static str,
    /// Whether its calls carry what the process knows of the namespace ([`crate::call::Caller::knows`]): only their
    /// answers say whether this is still the store that it was.
    pub tells: bool,
    /// Whether its answers may show leases, whose ids only the key of the namespace makes.
    pub shows_leases: bool,
}

impl Function {
    /// The function of an operation.
    pub(crate) const fn of<O: Operation>() -> Self {
        let (tells, shows_leases) = match O::SPEC.carries {
            Carries::Nothing => (false, false),
            Carries::Key => (false, true),
            Carries::Knowledge => (true, true),
        };
        Function { name: O::NAME, tells, shows_leases }
    }

    const fn new(name: &'static str) -> Self {
        Function { name, tells: false, shows_leases: false }
    }
    const fn telling(self) -> Self {
        Function { tells: true, ..self }
    }
    const fn showing_leases(self) -> Self {
        Function { shows_leases: true, ..self }
    }
}

/// The key of a namespace, asked for or given.
pub(crate) const KEY: Function = Function::new("key").telling();
/// What time does.
pub(crate) const TICK: Function = Function::new("tick").telling();
/// Moments of schedules that were computed.
pub(crate) const PLAN: Function = Function::new("plan");
/// Moments of schedules that are to be decided.
pub(crate) const FIRE: Function = Function::new("fire");
/// Gauges that are to be read by this process.
pub(crate) const CLAIM_GAUGES: Function = Function::new("claim_gauges");
/// What one of them showed.
pub(crate) const TAKE_READING: Function = Function::new("take_reading");
/// Leases that were granted to a caller who is gone.
pub(crate) const UNDO: Function = Function::new("undo");
/// Settles, and a lease call right after them.
pub(crate) const SETTLE_AND_LEASE: Function =
    Function::new("settle_and_lease").telling().showing_leases();
/// A lease call whose time to wait is over.
pub(crate) const DROP_WAIT: Function = Function::new("drop_wait").showing_leases();
/// A call for the result of a job, registered with it.
pub(crate) const WAIT_RESULT: Function = Function::new("wait_result");
/// A call for a flow, registered with it.
pub(crate) const WAIT_FLOW: Function = Function::new("wait_flow");
/// Which of these are not waited for any more.
pub(crate) const LOOK_AWAITED: Function = Function::new("look_awaited");
/// Calls that wait no more: their callers are gone, or their time is over.
pub(crate) const LEAVE: Function = Function::new("leave");
/// A whole set of a pool in parts: its begin, a part, its end.
pub(crate) const SYNC_BEGIN: Function = Function::new("sync_begin").showing_leases();
pub(crate) const SYNC_ITEMS: Function = Function::new("sync_items").showing_leases();
pub(crate) const SYNC_END: Function = Function::new("sync_end").showing_leases();
/// The same of the schedules of an owner.
pub(crate) const SYNC_SCHEDULES_BEGIN: Function = Function::new("sync_schedules_begin");
pub(crate) const SYNC_SCHEDULES_ITEMS: Function = Function::new("sync_schedules_items");
pub(crate) const SYNC_SCHEDULES_END: Function = Function::new("sync_schedules_end");
// Those of a copy show leases without their ids; the key itself stays where it is.
pub(crate) const COPY_LOOK: Function = Function::new("copy_look");
pub(crate) const COPY_FREEZE: Function = Function::new("copy_freeze").telling();
pub(crate) const COPY_THAW: Function = Function::new("copy_thaw");
pub(crate) const COPY_HEAD: Function = Function::new("copy_head");
pub(crate) const COPY_OUT: Function = Function::new("copy_out");
pub(crate) const COPY_BEGIN: Function = Function::new("copy_begin");
pub(crate) const COPY_IN: Function = Function::new("copy_in");
pub(crate) const COPY_OPEN: Function = Function::new("copy_open");
pub(crate) const COPY_DROP: Function = Function::new("copy_drop");

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tenure_core::requests::*;

    use super::*;

    const OWN: &[Function] = &[
        KEY,
        TICK,
        PLAN,
        FIRE,
        CLAIM_GAUGES,
        TAKE_READING,
        UNDO,
        SETTLE_AND_LEASE,
        DROP_WAIT,
        WAIT_RESULT,
        WAIT_FLOW,
        LOOK_AWAITED,
        LEAVE,
        SYNC_BEGIN,
        SYNC_ITEMS,
        SYNC_END,
        SYNC_SCHEDULES_BEGIN,
        SYNC_SCHEDULES_ITEMS,
        SYNC_SCHEDULES_END,
        COPY_LOOK,
        COPY_FREEZE,
        COPY_THAW,
        COPY_HEAD,
        COPY_OUT,
        COPY_BEGIN,
        COPY_IN,
        COPY_OPEN,
        COPY_DROP,
    ];

    fn all() -> Vec<Function> {
        macro_rules! of_operations {
            ($($request:ident)*) => {
                vec![$(Function::of::<$request>()),*]
            };
        }
        let mut all = tenure_core::each_operation!(of_operations);
        all.extend_from_slice(OWN);
        // A schedule that was changed is put: what the change makes of it is computed here.
        all.retain(|function| function.name != "patch_schedule");
        all
    }

    /// The functions that the library registers, each with its text.
    fn of_library() -> BTreeMap<String, String> {
        let library = crate::library::Library::release();
        let functions = library.text().split("\nlib.op('").skip(1);
        let named = functions.map(|function| {
            let (name, rest) = function.split_once('\'').expect("a name");
            (name.to_owned(), rest.split("\nend").next().expect("a function").to_owned())
        });
        named.collect()
    }

    #[test]
    fn every_function_of_the_library_is_called_and_no_other() {
        let mut called: Vec<&str> = all().iter().map(|function| function.name).collect();
        called.sort_unstable();
        let library = of_library();
        let registered: Vec<&str> = library.keys().map(String::as_str).collect();
        assert_eq!(called, registered);
    }

    #[test]
    fn a_call_tells_what_the_process_knows_if_its_function_looks_at_it() {
        let library = of_library();
        let all = all();
        for function in &all {
            let looks = library[function.name].contains("lib.look_at_run(args.kn");
            assert_eq!(function.tells, looks, "{}", function.name);
        }
        assert_eq!(all.iter().filter(|function| function.tells).count(), 7);
    }
}
