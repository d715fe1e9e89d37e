//! A Redis that is copied, or becomes a copy: all namespaces under its prefix.
//!
//! What is frozen, how far a copy is and what is in it is kept by the library, in the same steps
//! (`lua/ops/copy_out.lua`, `lua/ops/copy_in.lua`). Here namespaces are found, which needs a look at all
//! keys, and an unfinished copy is removed, which needs another.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::IgnoredAny;
use tenure_core::copy::{CopiedPage, Cursor, Head, Item, Section};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_engine::Fault;
use tenure_engine::copy::{Begun, CopyError, Found, Mark, Source, Step, Target};

use crate::by_itself;
use crate::call::{Caller, malformed};
use crate::decode::{
    BegunReply, Copied, CopiedReply, FlowCopied, FrozenReply, HeadReply, JobCopied, KeyCopied,
    KinCopied, LeaseCopied, LimitCopied, LookReply, PoolCopied, QueueCopied, ResourceCopied,
    ScheduleCopied, SetCopied, SettingCopied, TurnCopied,
};
use crate::encode::{BeginArgs, CopyArgs, FreezeArgs, InArgs, NoArgs, OutArgs, pack};
use crate::function::{
    COPY_BEGIN, COPY_DROP, COPY_FREEZE, COPY_HEAD, COPY_IN, COPY_LOOK, COPY_OPEN, COPY_OUT,
    COPY_THAW,
};
use crate::link::cmd;
use crate::shared::Shared;
use crate::waiting::Space;

/// Things on one page, and about how many bytes of what jobs and resources bring: a call of some
/// milliseconds.
const ITEMS: usize = 250;
const BYTES: usize = 4 << 20;
/// Keys that are removed by one command.
const KEYS: usize = 500;

/// A Redis in the hands of a copy. While one is at work the engine that it comes from is to be used for
/// nothing else.
pub struct RedisCopy {
    shared: Arc<Shared>,
}

/// What a namespace is in a copy.
enum CopyState {
    From(Mark),
    Into(String),
    Dropping,
    ByHand,
    Whole(String),
    Empty,
    Used,
}

impl RedisCopy {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        RedisCopy { shared }
    }

    /// Who calls in a namespace; without a timer, since nothing is due in one that is frozen.
    fn caller(&self, namespace: &Namespace) -> Caller {
        let shared = self.shared.clone();
        let space = Space::new(namespace.clone(), shared.link.address(), &shared.proc);
        Caller { space: Arc::new(space), shared }
    }

    /// All namespaces under the prefix, by the keys that every one has.
    async fn all(&self) -> Result<Vec<Namespace>, CopyError> {
        let prefix = self.shared.link.address().prefix();
        let mut all = BTreeSet::new();
        let pattern = format!("{}{{*}}m", escaped(prefix));
        let keys = self.shared.link.keys(&pattern, |key| {
            let name = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(prefix));
            let name = name.and_then(|key| key.strip_prefix('{')?.strip_suffix("}m"));
            all.extend(name.and_then(|name| Namespace::parse(name).ok()));
        });
        keys.await.map_err(|why| crate::call::told(COPY_LOOK.name, why))?;
        Ok(all.into_iter().collect())
    }

    async fn look(&self, namespace: &Namespace) -> Result<CopyState, CopyError> {
        let look: LookReply = self.caller(namespace).reply(COPY_LOOK, &NoArgs {}).await?;
        let Some(frozen) = look.frozen.0 else {
            return Ok(match look.copied.0 {
                Some(copy) => CopyState::Whole(copy),
                None if look.empty => CopyState::Empty,
                None => CopyState::Used,
            });
        };
        let (what, copy) = frozen.split_once(':').unwrap_or(("", ""));
        let copy = copy.to_owned();
        let to = look.to.0.unwrap_or_default();
        Ok(match what {
            "from" => CopyState::From(Mark { copy, to, whole: look.whole }),
            "into" => CopyState::Into(copy),
            "drop" => CopyState::Dropping,
            _ => CopyState::ByHand,
        })
    }

    async fn marked_now(&self) -> Result<Option<Mark>, CopyError> {
        let mut mark: Option<Mark> = None;
        let mut open = false;
        for namespace in self.all().await? {
            match (self.look(&namespace).await?, &mut mark) {
                (CopyState::From(here), None) => mark = Some(here),
                (CopyState::From(here), Some(mark)) if mark.copy == here.copy => {
                    mark.whole &= here.whole;
                }
                (CopyState::From(_), Some(_)) => {
                    return Err(CopyError::no(
                        format!("namespace {namespace:?} is frozen for another copy than others"),
                        "thaw the source first: tenure copy --thaw --from ADDRESS",
                    ));
                }
                (CopyState::Into(_) | CopyState::Dropping, _) => {
                    let place = format!("namespace {namespace:?}").into();
                    let address = "ADDRESS".into();
                    return Err(Refusal::from(CopyRefusal::Unfinished { place, address }).into());
                }
                (CopyState::ByHand, _) => {
                    return Err(CopyError::no(
                        format!("namespace {namespace:?} is frozen by hand"),
                        "thaw it as it was frozen: HDEL 'PREFIX{NAMESPACE}m' frozen",
                    ));
                }
                (CopyState::Whole(_) | CopyState::Empty | CopyState::Used, _) => open = true,
            }
        }
        // One that was never frozen, or that came since.
        Ok(mark.map(|mark| Mark { whole: mark.whole && !open, ..mark }))
    }

    async fn found_now(&self) -> Result<Found, CopyError> {
        let (mut whole, mut part, mut other) = (None, None, None);
        for namespace in self.all().await? {
            let what = |what: &str| Some(format!("namespace {namespace:?} {what}"));
            match self.look(&namespace).await? {
                CopyState::Dropping => return Ok(Found::Dropping),
                CopyState::Into(copy) => match &part {
                    Some(first) if *first != copy => other = what("is a part of another copy"),
                    _ => part = Some(copy),
                },
                CopyState::Whole(copy) => whole = Some(copy),
                CopyState::From(mark) => {
                    other = what(&format!("is frozen, as the source of {}", mark.to));
                }
                CopyState::ByHand => other = what("is frozen by hand"),
                CopyState::Used => other = other.or(what("has jobs, queues, limits or pools")),
                CopyState::Empty => {}
            }
        }
        Ok(match (part, whole, other) {
            // Some of its namespaces are opened already.
            (Some(part), _, None) => Found::Part(part),
            (None, Some(whole), _) => Found::Whole(whole),
            (_, _, Some(other)) => Found::Other(other),
            (None, None, None) => Found::Empty,
        })
    }

    async fn section<T: Copied>(
        &self,
        namespace: &Namespace,
        cursor: &Cursor,
    ) -> Result<CopiedPage, CopyError> {
        let (section, after) = (cursor.section.as_str(), cursor.after.as_str());
        let args = pack(&OutArgs { section, after, max: ITEMS, bytes: BYTES });
        let caller = self.caller(namespace);
        let answered = caller.ask::<CopiedReply<T>>(COPY_OUT, args).await;
        let answered = answered.map_err(tenure_engine::CallError::from)?;
        let page = answered.reply.page(cursor, &answered.blobs).map_err(malformed(COPY_OUT));
        Ok(page?)
    }

    /// Removes all keys of a namespace, its own last: until then it says what it is.
    async fn remove(&self, namespace: &Namespace) -> Result<(), CopyError> {
        let link = &self.shared.link;
        let address = link.address();
        let meta = address.key(namespace.as_str(), "m").into_bytes();
        let of = format!("{}*", escaped(&address.key(namespace.as_str(), "")));
        let mut all = Vec::new();
        let told = |why| CopyError::from(crate::call::told(COPY_DROP.name, why));
        link.keys(&of, |key| {
            if key != meta {
                all.push(key.to_vec());
            }
        })
        .await
        .map_err(told)?;
        for keys in all.chunks(KEYS) {
            let mut unlink = cmd("UNLINK");
            for key in keys {
                unlink.arg(key);
            }
            link.command(namespace.as_str(), &unlink).await.map_err(told)?;
        }
        let mut unlink = cmd("UNLINK");
        unlink.arg(meta);
        link.command(namespace.as_str(), &unlink).await.map_err(told)?;
        Ok(())
    }
}

/// A text as a pattern of Redis that matches it alone. The crates that escape globs are for those of a shell, in
/// which `^` stands for itself and a backslash cannot escape.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

impl Source for RedisCopy {
    fn marked(&self) -> Step<'_, Option<Mark>> {
        Box::pin(self.marked_now())
    }

    fn freeze<'a>(&'a self, mark: &'a Mark) -> Step<'a, ()> {
        Box::pin(async {
            let Mark { copy, to, whole } = mark;
            for namespace in self.all().await? {
                let caller = self.caller(&namespace);
                let args = FreezeArgs { copy, to, whole: *whole, kn: caller.knows() };
                while caller.reply::<FrozenReply>(COPY_FREEZE, &args).await?.more {}
            }
            Ok(())
        })
    }

    fn thaw(&self) -> Step<'_, ()> {
        Box::pin(async {
            for namespace in self.all().await? {
                if let CopyState::From(_) = self.look(&namespace).await? {
                    let caller = self.caller(&namespace);
                    caller.reply::<IgnoredAny>(COPY_THAW, &NoArgs {}).await?;
                }
            }
            Ok(())
        })
    }

    fn namespaces(&self) -> Step<'_, Vec<Namespace>> {
        Box::pin(self.all())
    }

    fn head<'a>(&'a self, namespace: &'a Namespace) -> Step<'a, Head> {
        Box::pin(async {
            let caller = self.caller(namespace);
            let answered = caller.ask::<HeadReply>(COPY_HEAD, pack(&NoArgs {})).await;
            let answered = answered.map_err(tenure_engine::CallError::from)?;
            Ok(answered.reply.head(answered.now))
        })
    }

    fn page<'a>(&'a self, namespace: &'a Namespace, cursor: &'a Cursor) -> Step<'a, CopiedPage> {
        Box::pin(async {
            match cursor.section {
                Section::Queues => self.section::<QueueCopied>(namespace, cursor).await,
                Section::Settings => self.section::<SettingCopied>(namespace, cursor).await,
                Section::Limits => self.section::<LimitCopied>(namespace, cursor).await,
                Section::Leases => self.section::<LeaseCopied>(namespace, cursor).await,
                Section::Turns => self.section::<TurnCopied>(namespace, cursor).await,
                Section::Pools => self.section::<PoolCopied>(namespace, cursor).await,
                Section::Resources => self.section::<ResourceCopied>(namespace, cursor).await,
                Section::Jobs => self.section::<JobCopied>(namespace, cursor).await,
                Section::Keys => self.section::<KeyCopied>(namespace, cursor).await,
                Section::Kin => self.section::<KinCopied>(namespace, cursor).await,
                Section::Flows => self.section::<FlowCopied>(namespace, cursor).await,
                Section::Schedules => self.section::<ScheduleCopied>(namespace, cursor).await,
                Section::Sets => self.section::<SetCopied>(namespace, cursor).await,
            }
        })
    }
}

impl Target for RedisCopy {
    fn found(&self) -> Step<'_, Found> {
        Box::pin(self.found_now())
    }

    fn begin<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        head: &'a Head,
    ) -> Step<'a, Begun> {
        Box::pin(async move {
            let Head { fence, arrival, used, .. } = *head;
            let args = BeginArgs { copy, fence, arrival, used };
            let caller = self.caller(namespace);
            let BegunReply { whole, pages, next } = caller.reply(COPY_BEGIN, &args).await?;
            let next = next.0.as_deref().map(str::parse::<Cursor>).transpose();
            let next = next.map_err(|()| {
                Fault::Broken("the target remembers a cursor that is none".to_owned())
            })?;
            Ok(Begun { whole, pages, next })
        })
    }

    fn put<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        page: u64,
        items: Vec<Item>,
        next: Option<Cursor>,
    ) -> Step<'a, ()> {
        Box::pin(async move {
            let gauged = |item: &Item| matches!(item, Item::Setting(of) if of.gauge.is_some());
            let args = InArgs::of(copy, page, &items, next.as_ref());
            let caller = self.caller(namespace);
            if matches!(items.first(), Some(Item::Schedule(_))) || items.iter().any(gauged) {
                by_itself::note(&caller).await;
            }
            caller.reply::<IgnoredAny>(COPY_IN, &args).await?;
            Ok(())
        })
    }

    fn open<'a>(&'a self, copy: &'a str) -> Step<'a, ()> {
        Box::pin(async move {
            for namespace in self.all().await? {
                if let CopyState::Into(_) = self.look(&namespace).await? {
                    let caller = self.caller(&namespace);
                    caller.reply::<IgnoredAny>(COPY_OPEN, &CopyArgs { copy }).await?;
                }
            }
            Ok(())
        })
    }

    fn give_up(&self) -> Step<'_, ()> {
        Box::pin(async {
            for namespace in self.all().await? {
                if let CopyState::Into(_) | CopyState::Dropping = self.look(&namespace).await? {
                    let caller = self.caller(&namespace);
                    caller.reply::<IgnoredAny>(COPY_DROP, &NoArgs {}).await?;
                    self.remove(&namespace).await?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_itself_alone() {
        assert_eq!(escaped("tenure:"), "tenure:");
        assert_eq!(escaped("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\");
    }
}
