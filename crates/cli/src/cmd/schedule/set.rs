//! `tenure schedule set`: options become the body of the API's call, so that every form and bound is checked in one place.

use serde::Serialize;
use tenure_core::decode;
use tenure_core::names::{Owner, QueueName};
use tenure_core::requests::PutSchedule;
use tenure_core::schedule::TimingSpec;
use tenure_core::secret::Json;
use tenure_core::time::Span;

use crate::args::schedules::ScheduleSetArgs;
use crate::exit::Failure;
use crate::json_args::{self, SaidFields};
use crate::output::clock;

/// A field that is not given is null, which is its default.
#[derive(Serialize)]
struct ScheduleSaid<'a> {
    #[serde(flatten)]
    timing: TimingSpec,
    overlap: Option<String>,
    catch_up: Option<String>,
    catch_up_max: Option<u32>,
    owner: Option<Owner>,
    job: MadeSaid<'a>,
}

/// The job of each moment.
#[derive(Serialize)]
struct MadeSaid<'a> {
    queue: QueueName,
    #[serde(flatten)]
    fields: SaidFields<'a>,
    payload: Json,
    retry: Option<Json>,
    expires_in: Option<Span>,
}

/// The call that sets all of a schedule.
pub fn request(args: ScheduleSetArgs) -> Result<PutSchedule, Failure> {
    let timing = TimingSpec {
        ends_at: args.ends_at,
        jitter: args.jitter.unwrap_or_default(),
        ..args.timing.spec(clock::now())
    };
    let job = MadeSaid {
        queue: args.queue,
        fields: SaidFields::of(&args.say)?,
        payload: json_args::payload(args.payload.as_deref())?,
        retry: json_args::retry(args.say.retry.as_deref())?,
        expires_in: args.expires_in,
    };
    let fields = ScheduleSaid {
        timing,
        overlap: args.overlap,
        catch_up: args.catch_up,
        catch_up_max: args.catch_up_max,
        owner: args.owner,
        job,
    };
    let body = Json::of(&fields).map_err(Failure::bug)?;
    decode::put_schedule(args.id.as_str(), body.text().as_bytes())
        .map_err(|no| json_args::usage("schedule set", &no))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::schedules::ScheduleAction;
    use crate::args::{Cli, ClientCommand, Command};
    use clap::Parser;
    use tenure_core::names::Group;
    use tenure_core::schedule::{CatchUp, Overlap};

    /// The call that `tenure schedule set` makes with these options.
    fn set(more: &[&str]) -> Result<PutSchedule, Failure> {
        let line = [&["tenure", "schedule", "set", "news-42"], more].concat();
        let cli = Cli::try_parse_from(line).unwrap();
        let Command::Client(ClientCommand::Schedule(args)) = cli.command else {
            panic!("another command")
        };
        let Some(ScheduleAction::Set(args)) = args.action else { panic!("another action") };
        request(*args)
    }

    #[test]
    fn options_become_the_settings_of_a_schedule() {
        let timing = ["--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin", "--jitter", "30s"];
        let more = "--starts-at 2026-12-01T08:00:00Z --ends-at 2027-12-01T08:00:00Z \
                    --overlap queue --catch-up all --catch-up-max 7 --owner sources \
                    --queue news {\"source\":42} --kind visit --priority -3 --group cn \
                    --need limit:site:example.com --retry {\"max_attempts\":5} --timeout 5m \
                    --retain 1h --expires-in 10m --label a=b=c";
        let more: Vec<&str> = more.split(' ').collect();
        let said = set(&[&timing[..], &more].concat()).unwrap();
        let settings = *said.settings;
        let (timing, job) = (&settings.timing, &settings.job);
        assert_eq!(said.schedule.as_str(), "news-42");
        assert_eq!(timing.cron.as_deref(), Some("0 9 * * 1-5"));
        assert_eq!(timing.zone.as_deref(), Some("Europe/Berlin"));
        assert_eq!(timing.starts_at, "2026-12-01T08:00:00Z".parse().ok());
        assert_eq!(timing.ends_at, "2027-12-01T08:00:00Z".parse().ok());
        assert_eq!(timing.jitter, Span::from_s(30));
        assert_eq!((settings.overlap, settings.catch_up), (Overlap::Queue, CatchUp::All));
        assert_eq!(settings.catch_up_max, 7);
        assert_eq!(settings.owner, Owner::parse("sources").ok());
        assert_eq!((job.queue.as_str(), job.kind.as_str(), job.priority), ("news", "visit", -3));
        assert_eq!(job.payload.as_ref().map(Json::text), Some("{\"source\":42}"));
        assert_eq!(job.group, Group::parse("cn").ok());
        assert_eq!(job.needs.as_ref().map(Vec::len), Some(1));
        assert_eq!(job.retry.as_ref().map(|retry| retry.max_attempts), Some(5));
        assert_eq!(
            (job.timeout, job.retain, job.expires_in),
            (Some(Span::from_s(300)), Some(Span::from_s(3_600)), Some(Span::from_s(600)))
        );
        assert_eq!(job.labels["a"], "b=c");
    }

    #[test]
    fn what_is_not_said_is_the_default() {
        let settings = set(&["--every", "15m", "--queue", "q"]).unwrap().settings;
        assert_eq!(
            (settings.timing.every, &settings.timing.zone),
            (Some(Span::from_s(900)), &None)
        );
        assert_eq!((settings.overlap, settings.catch_up), (Overlap::Skip, CatchUp::Last));
        let job = &settings.job;
        assert_eq!(job.payload, Some(Json::null()));
        assert!(job.needs.is_none() && job.retry.is_none() && job.timeout.is_none());
        let cron = set(&["--cron", "@daily", "--queue", "q"]).unwrap().settings;
        assert_eq!(cron.timing.zone.as_deref(), Some("UTC"));
    }

    #[test]
    fn what_breaks_a_form_or_a_bound_is_wrong_usage() {
        for (more, part) in [
            (&["--overlap", "wait"][..], "overlap"),
            (&["--catch-up", "some"], "catch"),
            (&["--jitter", "2d"], "jitter"),
            (&["--retry", "{\"max_atempts\":5}"], "max_atempts"),
            (&["--retry", "{"], "--retry"),
            (&["--expires-in", "0s"], "expires_in"),
            (&["--label", "a=b", "--label", "a=c"], "given twice"),
            (&["--need", "limit:"], "--need"),
            (&["{"], "PAYLOAD"),
        ] {
            let line = [&["--every", "1h", "--queue", "q"], more].concat();
            let failure = set(&line).unwrap_err();
            assert_eq!(failure.code, 2, "{more:?}");
            assert!(failure.sentence.as_ref().is_some_and(|s| s.contains(part)), "{failure:?}");
        }
    }
}
