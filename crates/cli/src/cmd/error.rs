//! `tenure error`: what the code of an error means, and what to do about it. The pages are those of `docs/errors`.

use tenure_core::decode::nearest;
use tenure_core::refusal::Code;

use crate::exit::{Failure, NO};
use crate::output::Output;
use crate::output::prose::plain;
use crate::output::table::Table;

macro_rules! page {
    ($code:literal) => {
        include_str!(concat!("../../../../docs/errors/", $code, ".md"))
    };
}

/// Prints the page of a code, or lists all codes.
pub fn run(out: Output, code_text: Option<&str>) -> Result<(), Failure> {
    let Some(code_text) = code_text else {
        let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        return out.answer(&all, |_| list());
    };
    // As a program shows it, or as a person repeats it.
    let text =
        code_text.trim().trim_start_matches("urn:tenure:error:").to_lowercase().replace('-', "_");
    match text.parse::<Code>() {
        Ok(code) => out.answer(page(code), plain),
        Err(()) => Err(unknown(&text)),
    }
}

fn unknown(text: &str) -> Failure {
    let near = nearest(text, Code::ALL.iter().map(|code| code.as_str()));
    let near = near.map(|near| format!("did you mean '{near}'? ")).unwrap_or_default();
    Failure::new(NO, format!("there is no error code '{text}'"))
        .hint(format!("{near}`tenure error` lists all codes"))
}

fn list() -> String {
    let mut table = Table::new(&["CODE", "STATUS", "MEANS"]);
    for code in Code::ALL {
        table.row([code.as_str(), &code.status().to_string(), code.title()].map(str::to_owned));
    }
    table.render("") + "\nOne of them: tenure error CODE\n"
}

fn page(code: Code) -> &'static str {
    match code {
        Code::BadJson => page!("bad_json"),
        Code::BadRequest => page!("bad_request"),
        Code::Unauthorized => page!("unauthorized"),
        Code::Forbidden => page!("forbidden"),
        Code::ForbiddenOrigin => page!("forbidden_origin"),
        Code::JobNotFound => page!("job_not_found"),
        Code::QueueNotFound => page!("queue_not_found"),
        Code::LimitNotFound => page!("limit_not_found"),
        Code::PoolNotFound => page!("pool_not_found"),
        Code::ResourceNotFound => page!("resource_not_found"),
        Code::ScheduleNotFound => page!("schedule_not_found"),
        Code::FlowNotFound => page!("flow_not_found"),
        Code::LeaseNotFound => page!("lease_not_found"),
        Code::RouteNotFound => page!("route_not_found"),
        Code::MethodNotAllowed => page!("method_not_allowed"),
        Code::RequestTimeout => page!("request_timeout"),
        Code::WrongState => page!("wrong_state"),
        Code::UniqueConflict => page!("unique_conflict"),
        Code::NotEmpty => page!("not_empty"),
        Code::InUse => page!("in_use"),
        Code::StaleSync => page!("stale_sync"),
        Code::OtherOwner => page!("other_owner"),
        Code::TooLarge => page!("too_large"),
        Code::UnsupportedMediaType => page!("unsupported_media_type"),
        Code::InvalidField => page!("invalid_field"),
        Code::UnknownField => page!("unknown_field"),
        Code::OutOfBounds => page!("out_of_bounds"),
        Code::ConflictingFields => page!("conflicting_fields"),
        Code::UnknownLimit => page!("unknown_limit"),
        Code::UnknownPool => page!("unknown_pool"),
        Code::UnknownResource => page!("unknown_resource"),
        Code::NeverFits => page!("never_fits"),
        Code::DuplicateNeed => page!("duplicate_need"),
        Code::EmptySet => page!("empty_set"),
        Code::RetiresMost => page!("retires_most"),
        Code::Cycle => page!("cycle"),
        Code::UnknownParent => page!("unknown_parent"),
        Code::UnknownZone => page!("unknown_zone"),
        Code::NeverFires => page!("never_fires"),
        Code::HeadTooLarge => page!("head_too_large"),
        Code::QueueFull => page!("queue_full"),
        Code::LineFull => page!("line_full"),
        Code::NamespacesFull => page!("namespaces_full"),
        Code::StoreFull => page!("store_full"),
        Code::Overloaded => page!("overloaded"),
        Code::Draining => page!("draining"),
        Code::StoreUnavailable => page!("store_unavailable"),
        Code::TrailUnwritable => page!("trail_unwritable"),
        Code::NotOwner => page!("not_owner"),
        Code::OutcomeUnknown => page!("outcome_unknown"),
        Code::LeaseLost => page!("lease_lost"),
        Code::AlreadySettled => page!("already_settled"),
        Code::Internal => page!("internal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_the_page_of_its_name() {
        for code in Code::ALL {
            let first = page(*code).lines().next();
            assert_eq!(first, Some(format!("# {code}").as_str()));
        }
    }

    #[test]
    fn a_code_that_is_nearly_right_is_named() {
        let no = unknown("queue_ful");
        assert_eq!(no.code, NO);
        assert!(no.hint.unwrap().contains("did you mean 'queue_full'?"));
        assert!(!unknown("zzz").hint.unwrap().contains("did you mean"));
    }
}
