//! `/v1/limits`.

use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};

use super::{Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(ListLimits, "List limits that are set or in use", 200 "Limits"),
    route!(GetLimit, "Show a limit", 200 "Limit"),
    route!(PutLimit, "Replace all settings of a limit", 200 "Limit", 201 "Limit"),
    route!(PatchLimit, "Change settings of a limit", 200 "Limit"),
    route!(DeleteLimit, "Forget settings of a limit", 204 ""),
    route!(PauseLimit, "Pause a limit", 200 "Limit"),
    route!(ResumeLimit, "End a pause", 200 "Limit"),
    route!(ObserveLimit, "Say how many permits work outside takes", 200 "Limit"),
];
