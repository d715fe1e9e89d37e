//! Every case of the table once, with sample parameters: its texts, and the rules for texts.

use super::*;
use crate::job::JobState;
use crate::names::{
    FlowName, JobId, LimitName, Owner, PoolName, QueueName, Ref, ResourceId, ScheduleId, UniqueKey,
};
use crate::refusal::{Code, Refusal};
use crate::time::{Moment, Span};

/// A parameter with a plausible value: a text is the parameter's name.
pub(super) trait Sample {
    fn sample(name: &str) -> Self;
}

macro_rules! samples {
    ($($type:ty)+, |$name:ident| $sample:expr) => {
        $(impl Sample for $type {
            fn sample($name: &str) -> Self {
                $sample
            }
        })+
    };
}
samples!(FlowName JobId LimitName Owner PoolName QueueName Ref ResourceId ScheduleId String UniqueKey,
         |name| name.parse().unwrap());
samples!(Phrase, |name| name.to_owned().into());
samples!(u16 u32 u64 usize i64, |_name| 3);
samples!(char, |_name| '/');
samples!(bool, |_name| false);
samples!(JobState, |_name| JobState::Running);
samples!(Moment, |_name| Moment::LAST);
samples!(Span, |_name| Span::from_s(6));
samples!(SetPlace, |_name| SetPlace::Line(4));
samples!(Option<String>, |name| Some(name.to_owned()));

impl<T: Sample> Sample for Vec<T> {
    fn sample(name: &str) -> Self {
        vec![T::sample(name), T::sample("other")]
    }
}

/// Every case of every type.
fn samples() -> impl Iterator<Item = (&'static str, [&'static str; 2], Refusal)> {
    macro_rules! of {
        ($($type:ident)+) => { [$($type::samples()),+].into_iter().flatten() };
    }
    of! {
        AccessRefusal BodyRefusal CopyRefusal FlowRefusal JobRefusal LeaseRefusal LimitRefusal NameRefusal NeedRefusal PoolRefusal
        QueueRefusal ScheduleRefusal ServerRefusal StoreRefusal TimingRefusal ValueRefusal
    }
}

#[test]
fn every_case_says_what_is_wrong_and_what_to_do() {
    for (name, written, no) in samples() {
        let Refusal { detail, hint, .. } = &no;
        for text in [detail, hint] {
            assert!(
                !text.is_empty() && text.trim() == text && !text.contains('\n'),
                "{name}: {text:?}"
            );
            assert!(!text.contains("  "), "{name}: two spaces in {text:?}");
            assert!(!text.ends_with('.'), "{name}: a full stop ends {text:?}");
            assert!(text.len() < 400, "{name}: {text:?} is long");
            for homely in [" is due", "be it ", "but for ", "so many", "nobody's"] {
                assert!(!text.contains(homely), "{name}: {text:?}");
            }
        }
        for secret in ["payload", "data", "result", "token", "password"] {
            // A doubled brace stands for a single one in the text, and is no parameter.
            let told = |text: &str| text.replace("{{", "").contains(&format!("{{{secret}"));
            assert!(!written.into_iter().any(told), "{name} tells a {secret}");
        }
        let first = detail.chars().next().expect("a first letter");
        assert!(!first.is_uppercase(), "{name}: {detail:?} begins with a capital");
    }
}

#[test]
fn the_latest_moment_is_the_bound() {
    assert_eq!(super::values::LATEST.parse(), Ok(crate::time::Moment::LAST));
}

#[test]
fn a_case_says_its_parameters_where_they_belong() {
    let no = Refusal::from(LimitRefusal::NotSet { limit: "scrapy".parse().unwrap() });
    assert_eq!(no.code, Code::LimitNotFound);
    assert_eq!(no.detail, "the limit \"scrapy\" is not set");
    let near = LeaseRefusal::SnoozeTooNear { until: "2027-01-15T08:00:00Z".parse().unwrap() };
    let said = "a snooze until 2027-01-15T08:00:00.000000Z is less than 100 ms ahead";
    assert_eq!(Refusal::from(near).detail, said);
}

#[test]
fn a_refusal_names_the_job_in_the_way_or_the_time_to_retry() {
    for (name, _, no) in samples() {
        let of_a_token = ["AccessRefusal::TooManyCalls", "AccessRefusal::TooManyInFlight"];
        let told = of_a_token.contains(&name).then_some("caller");
        assert_eq!(no.caller.as_deref(), told, "{name}");
        let naming =
            ["ScheduleRefusal::JobEnded", "FlowRefusal::ParentEnded", "FlowRefusal::FollowedBy"];
        let in_the_way = no.code == Code::UniqueConflict || naming.contains(&name);
        assert_eq!(no.job.is_some(), in_the_way, "{name}");
        let passing = [
            Code::QueueFull,
            Code::LineFull,
            Code::StoreFull,
            Code::Overloaded,
            Code::Draining,
            Code::TrailUnwritable,
            Code::NotOwner,
        ];
        let waits = passing.contains(&no.code);
        assert_eq!(no.retry_after_s.is_some(), waits, "{name}");
    }
}

/// A code without a page does not help a refused caller; a page without a row is no code any more.
#[test]
fn every_code_has_a_page_and_a_row_in_the_list() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let list = std::fs::read_to_string(docs.join("README.md")).unwrap();
    for code in Code::ALL {
        assert!(docs.join(format!("{code}.md")).is_file(), "docs/errors/{code}.md is not there");
        let row = format!("| [`{code}`]({code}.md) | {} | {} |", code.status(), code.title());
        assert!(list.contains(&row), "docs/errors/README.md has no row {row}");
    }
    for page in std::fs::read_dir(&docs).unwrap() {
        let page = page.unwrap().path();
        let name = page.file_stem().and_then(|name| name.to_str()).unwrap().to_owned();
        assert!(name == "README" || name.parse::<Code>().is_ok(), "{name}.md is of no code");
    }
}
