//! One call of the library: packed, sent, read, and what went wrong with it said in the words of every
//! engine.
//!
//! What certainly did nothing because the server was between two states is tried again for a moment;
//! nothing that may have happened is ever repeated here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::sentences::{FrozenFor, StoreRefusal};
use tenure_engine::{CallError, Fault};
use tokio::time::Instant;

use crate::decode::{self, Answered, Denied, KeyReply, Malformed};
use crate::encode::{self, KeyArgs, Knows, SpaceArg};
use crate::function::{Function, KEY, TICK};
use crate::lease_id::Signer;
use crate::link::{LinkError, Value};
use crate::shared::Shared;
use crate::waiting::Space;

/// For so long a call is tried again that the server certainly did not do.
const AGAIN_FOR: Duration = Duration::from_secs(1);
/// Pauses between such tries: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(160);
/// What the address of a cluster begins with.
const CLUSTER_SCHEME: &str = "redis-cluster://";

/// Why a call has no reply.
#[derive(Debug)]
pub(crate) enum AskError {
    /// As callers are told.
    Call(CallError),
    /// The body that was to be changed is another by now.
    StaleBody,
}

impl From<CallError> for AskError {
    fn from(why: CallError) -> Self {
        AskError::Call(why)
    }
}
impl From<Fault> for AskError {
    fn from(why: Fault) -> Self {
        AskError::Call(why.into())
    }
}
impl From<AskError> for CallError {
    fn from(why: AskError) -> Self {
        match why {
            AskError::Call(why) => why,
            AskError::StaleBody => Fault::Broken("a body was compared unasked".to_owned()).into(),
        }
    }
}

/// When a call that was answered left, and when its answer was here: by the runtime's clock, and by this process's
/// watch.
#[derive(Clone, Copy)]
struct OnWay {
    sent: Instant,
    received: Instant,
    /// Left and received; `None` if a test moved the clock meanwhile.
    watched: Option<(u64, u64)>,
}

/// Calls in one namespace.
#[derive(Clone)]
pub(crate) struct Caller {
    pub shared: Arc<Shared>,
    pub space: Arc<Space>,
}

impl Caller {
    /// Calls a function of the library with these arguments.
    pub(crate) async fn ask<R: DeserializeOwned>(
        &self,
        function: Function,
        args: Result<Vec<u8>, Fault>,
    ) -> Result<Answered<R>, AskError> {
        self.ask_beside(function, args, &[]).await
    }

    /// The same, with texts that the arguments refer to beside them.
    pub(crate) async fn ask_beside<R: DeserializeOwned>(
        &self,
        function: Function,
        args: Result<Vec<u8>, Fault>,
        texts: &[Vec<u8>],
    ) -> Result<Answered<R>, AskError> {
        let (parts, on_way) = self.send(function, &args?, texts).await?;
        match decode::read(function.name, parts)? {
            Ok(mut answered) => {
                self.heard(function, &mut answered, on_way);
                Ok(self.signed(function, answered).await?)
            }
            Err(Denied::No(no)) => Err(CallError::Refused(no).into()),
            Err(Denied::StaleBody) => Err(AskError::StaleBody),
        }
    }

    /// What a message carries of the answer to a call.
    pub(crate) async fn carried<R: DeserializeOwned>(
        &self,
        function: Function,
        parts: Vec<Vec<u8>>,
    ) -> Result<Answered<R>, CallError> {
        match decode::read(function.name, parts)? {
            Ok(answered) => self.signed(function, answered).await,
            Err(_) => Err(Fault::Broken("a message carries a refusal".to_owned()).into()),
        }
    }

    /// An answer with who signs the leases that it shows.
    async fn signed<R>(
        &self,
        function: Function,
        mut answered: Answered<R>,
    ) -> Result<Answered<R>, CallError> {
        answered.blobs.signer = self.signs(function, answered.kid.as_deref()).await?;
        Ok(answered)
    }

    /// As [`Caller::ask`], for a reply that needs nothing beside it.
    pub(crate) async fn reply<R: DeserializeOwned>(
        &self,
        function: Function,
        args: &impl Serialize,
    ) -> Result<R, CallError> {
        Ok(self.ask(function, encode::pack(args)).await?.reply)
    }

    /// What every answer tells beside its reply.
    fn heard<R>(&self, function: Function, answered: &mut Answered<R>, on_way: OnWay) {
        let OnWay { sent, received, watched } = on_way;
        self.space.timer.heard(answered.now, answered.due, sent);
        if answered.counted {
            self.space.said.store(true, Ordering::Release);
        }
        if answered.unsaid {
            self.space.heard_of_unsaid();
        }
        if let Some(channel) = answered.denied.take() {
            self.shared.denied.set(Some(channel));
        }
        if let Some((sent, received)) = watched
            && answered.now > 0
            && let Some(leapt) = self.space.sight.heard(answered.now, sent, received)
        {
            self.shared.last_leap.note(leapt);
            // The sooner a tick says that nobody watched, the sooner leases are counted anew.
            self.space.timer.sooner(answered.now);
        }
        let left = answered.recovers_until.map(|until| until.saturating_sub(answered.now));
        let known = &self.space.known;
        known.heard_recovery(left, received);
        match answered.epoch.take() {
            Some((told, there)) => known.other_epoch(told.0.as_deref(), there, self.shared.watch()),
            None if function.tells => known.same_epoch(self.shared.watch()),
            None => {}
        }
    }

    /// What this process knows of the namespace, in case the store has forgotten it.
    pub(crate) fn knows(&self) -> Knows {
        let known = &self.space.known;
        let (epoch, age) = known.epoch(self.shared.watch());
        Knows {
            never: self.shared.forgets_never,
            kid: known.signer().map(|signer| signer.kid().to_owned()),
            ttl: known.longest_ttl(),
            epoch,
            age,
        }
    }

    /// Who signs the ids of the namespace's leases: as far as is known here, and it is asked for once.
    pub(crate) async fn signer(&self) -> Result<Arc<Signer>, CallError> {
        match self.space.known.signer() {
            Some(signer) => Ok(signer),
            None => self.signer_anew().await,
        }
    }

    /// The same, asked for in any case: a namespace without a key takes the one that is known here, or a
    /// new one.
    pub(crate) async fn signer_anew(&self) -> Result<Arc<Signer>, CallError> {
        let offered = match self.space.known.signer() {
            Some(signer) => signer,
            None => Arc::new(Signer::random()?),
        };
        let kn = &self.knows();
        let args = encode::pack(&KeyArgs { key: offered.key().reveal(), kid: offered.kid(), kn })?;
        let (parts, on_way) = self.send(KEY, &args, &[]).await?;
        let mut answered = match decode::read::<KeyReply>(KEY.name, parts)? {
            Ok(answered) => answered,
            Err(Denied::No(no)) => return Err(no.into()),
            Err(Denied::StaleBody) => return Err(AskError::StaleBody.into()),
        };
        self.heard(KEY, &mut answered, on_way);
        let KeyReply { key, kid } = answered.reply;
        let signer = match kid == offered.kid() {
            true => offered,
            false => Arc::new(Signer::of(key, kid).ok_or(Fault::Broken(NO_KEY.to_owned()))?),
        };
        self.space.known.has_key(signer.clone());
        Ok(signer)
    }

    /// Who signs the leases that an answer shows. `kid` is the name of the key that the namespace has:
    /// if it is another than the one that is known here, it is another namespace by now.
    async fn signs(
        &self,
        function: Function,
        kid: Option<&str>,
    ) -> Result<Option<Arc<Signer>>, CallError> {
        match self.space.known.signer() {
            Some(signer) if Some(signer.kid()) == kid => Ok(Some(signer)),
            None if !function.shows_leases => Ok(None),
            _ => match self.signer_anew().await {
                Err(_) if !function.shows_leases => Ok(None),
                other => other.map(Some),
            },
        }
    }

    /// What the operator says of the namespace, as every call carries it; empty if nothing is said. It holds
    /// from the first call on, also where the store has lost the namespace and this call makes it anew.
    fn settings(&self) -> Result<Vec<u8>, Fault> {
        match self.shared.of_spaces {
            Some(said) => {
                encode::pack(&SpaceArg { first: !self.space.said.load(Ordering::Acquire), ..said })
            }
            None => Ok(Vec::new()),
        }
    }

    async fn send(
        &self,
        function: Function,
        args: &[u8],
        texts: &[Vec<u8>],
    ) -> Result<(Vec<Vec<u8>>, OnWay), CallError> {
        let settings = self.settings()?;
        let parts: Vec<&[u8]> = std::iter::once(args)
            .chain(texts.iter().map(Vec::as_slice))
            .chain(std::iter::once(settings.as_slice()))
            .collect();
        // Nobody waits for a tick, but without ticks a process is taken for dead.
        let _turn = match function {
            TICK => None,
            _ => self.shared.turns.acquire().await.ok(),
        };
        let (namespace, meta) = (self.space.name.as_str(), self.space.meta.as_str());
        let began = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            let (sent, watch) = (Instant::now(), self.shared.watch_for_calls());
            let why = match self.shared.link.fcall(namespace, function.name, &[meta], &parts).await
            {
                Ok(value) => {
                    let back = self.shared.watch_for_calls();
                    let watched = watch.zip(back).filter(|(a, b)| a.moves == b.moves);
                    let watched = watched.map(|(a, b)| (a.us, b.us));
                    let on_way = OnWay { sent, received: Instant::now(), watched };
                    self.shared.times.took(function.name, on_way.received - sent);
                    return Ok((self::parts(function.name, value)?, on_way));
                }
                Err(why) => why,
            };
            match &why {
                LinkError::Unavailable(_) => self.shared.failed.unavailable(),
                LinkError::Unknown(_) => self.shared.failed.unknown(),
                LinkError::Refused { .. } => self.shared.failed.refused(),
            }
            if !is_between(&why) || began.elapsed() + pause > AGAIN_FOR {
                return Err(told(function.name, why));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// What a namespace has as its key is none.
const NO_KEY: &str = "the key of the namespace has another form than ours";

/// A reply whose parts do not go together.
pub(crate) fn malformed(function: Function) -> impl Fn(Malformed) -> CallError {
    move |what| decode::malformed(function.name, what).into()
}

fn parts(operation: &str, value: Value) -> Result<Vec<Vec<u8>>, CallError> {
    let broken = || Fault::Broken(format!("{operation} was answered in another form than ours"));
    let Value::Array(items) = value else { return Err(broken().into()) };
    let part = |item| match item {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(broken().into()),
    };
    items.into_iter().map(part).collect()
}

/// Whether the server did nothing and will soon be able to: a failover, a start, a slot on its way.
fn is_between(why: &LinkError) -> bool {
    if let LinkError::Refused { code, message } = why {
        if is_redirection(code) {
            return !message.contains(CLUSTER_SCHEME);
        } else if code == FROZEN {
            return frozen_for(message) == FrozenFor::ByHand;
        }
    }
    matches!(
        why.code(),
        Some("TRYAGAIN" | "LOADING" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "BUSY" | MOVING)
    )
}

/// The errors that are the library's own, by their codes. What follows a code are its parameters.
const FROZEN: &str = "TENURE_FROZEN";
pub(crate) const MOVING: &str = "TENURE_MOVING";
const LAYOUT: &str = "TENURE_LAYOUT";

/// The parameters of an error of the library; the server adds where in it that was.
fn parameters(message: &str) -> impl Iterator<Item = &str> {
    message.split(' ').take_while(|word| *word != "script:")
}

/// What the namespace is frozen for. Another word is that of another release, which an operator has to look at too.
fn frozen_for(message: &str) -> FrozenFor {
    parameters(message).next().and_then(FrozenFor::named).unwrap_or(FrozenFor::ByHand)
}

/// A node sends a call on to another. The link follows; what is left is a slot that moved on meanwhile,
/// or a cluster whose address is that of a single server, and then the message names the right scheme.
fn is_redirection(code: &str) -> bool {
    matches!(code, "MOVED" | "ASK")
}

/// What a caller is told.
pub(crate) fn told(operation: &str, why: LinkError) -> CallError {
    let (code, message) = match why {
        LinkError::Unavailable(why) => return Fault::Unavailable(why).into(),
        LinkError::Unknown(why) => return Fault::Unknown(why).into(),
        LinkError::Refused { code, message } => (code, message),
    };
    let unavailable = |sentence: &str| Fault::Unavailable(sentence.to_owned()).into();
    match code.as_str() {
        "OOM" => CallError::Refused(StoreRefusal::RedisFull.into()),
        "LOADING" => unavailable("redis is still loading its data: ask again in a moment"),
        "CLUSTERDOWN" => unavailable(
            "the cluster has no primary for this namespace: wait for its failover, or look at its \
             nodes",
        ),
        "READONLY" | "MASTERDOWN" => unavailable(
            "this redis is a replica: a failover is under way, or the address names a replica; name \
             the primary, the sentinels or the cluster",
        ),
        "MOVED" | "ASK" if message.contains(CLUSTER_SCHEME) => unavailable(&message),
        "MOVED" | "ASK" | "TRYAGAIN" | MOVING => unavailable(
            "the slot of this namespace is being moved to another node: ask again when it has \
             arrived",
        ),
        FROZEN => Fault::Unavailable(frozen_for(&message).to_string()).into(),
        "BUSY" => unavailable(
            "redis is busy with a script of somebody else: end it, or wait until it has ended",
        ),
        "MISCONF" => unavailable(
            "redis refuses to write because it cannot save to its disk: look at its log",
        ),
        "NOREPLICAS" => unavailable(
            "redis refuses to write because it has too few replicas: look at \
             \"min-replicas-to-write\"",
        ),
        LAYOUT => {
            let mut layouts = parameters(&message);
            let (there, own) = (layouts.next().unwrap_or("?"), layouts.next().unwrap_or("?"));
            Fault::Unavailable(format!(
                "another release of Tenure keeps this namespace in another form (layout {there}, and this release has \
                 {own}): run that release, or bring the namespace over with its `tenure copy`, as docs/deploy/upgrade.md says"
            ))
            .into()
        }
        "NOPERM" | "NOAUTH" | "WRONGPASS" => {
            Fault::Denied(StoreRefusal::RedisDenies { message }.into()).into()
        }
        // A command inside of a function that the user may not call.
        _ if message.contains("can't run this command") => {
            Fault::Denied(StoreRefusal::RedisDeniesCommand { message }.into()).into()
        }
        _ => Fault::Broken(format!("redis refused {operation}: {code} {message}")).into(),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::refusal::Code;

    use super::*;

    fn refused(code: &str) -> LinkError {
        LinkError::Refused { code: code.to_owned(), message: "m".to_owned() }
    }

    #[test]
    fn a_full_store_is_an_answer_and_no_fault() {
        assert_eq!(told("push", refused("OOM")).code(), Some(Code::StoreFull));
    }

    #[test]
    fn what_did_nothing_is_told_apart_from_what_may_have_happened() {
        for code in ["LOADING", "READONLY", "CLUSTERDOWN", FROZEN, LAYOUT] {
            let told = told("push", refused(code));
            assert!(matches!(told, CallError::Fault(Fault::Unavailable(_))), "{code}");
        }
        let lost = LinkError::Unknown("no answer".to_owned());
        assert!(!is_between(&lost));
        assert!(matches!(told("push", lost), CallError::Fault(Fault::Unknown(_))));
        assert!(matches!(told("push", refused("NOPERM")), CallError::Fault(Fault::Denied(_))));
        assert!(matches!(told("push", refused("ERR")), CallError::Fault(Fault::Broken(_))));
    }

    #[test]
    fn a_slot_that_moved_on_is_tried_again_and_a_wrong_address_is_not() {
        for code in ["MOVED", "ASK", "TRYAGAIN", MOVING] {
            assert!(is_between(&refused(code)), "{code}");
            let told = told("push", refused(code));
            assert!(matches!(told, CallError::Fault(Fault::Unavailable(_))), "{code}");
        }
        let wrong = LinkError::refused("MOVED", "write redis-cluster:// in its address");
        assert!(!is_between(&wrong));
        match told("push", wrong) {
            CallError::Fault(Fault::Unavailable(why)) => assert!(why.contains("redis-cluster://")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_parameters_of_an_error_make_its_sentence() {
        let error = |code, told: &str| {
            let message = format!("{told} script: tenure_9_1_push, on @user_function:12.");
            LinkError::refused(code, message.trim())
        };
        for (why, between, says) in [
            (error(FROZEN, "copied"), false, "tenure copy --thaw --from"),
            (error(FROZEN, "unfinished"), false, "tenure copy --thaw --to"),
            (error(FROZEN, "by_hand"), true, "thaw it when the slot has arrived"),
            (error(MOVING, ""), true, "is being moved"),
            (error(LAYOUT, "7 8"), false, "(layout 7, and this release has 8)"),
        ] {
            assert_eq!(is_between(&why), between, "{why:?}");
            match told("push", why) {
                CallError::Fault(Fault::Unavailable(told)) => {
                    assert!(told.contains(says) && !told.contains("script"), "{told}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_answer_is_a_list_of_texts() {
        let text = Value::BulkString(b"a".to_vec());
        assert_eq!(parts("push", Value::Array(vec![text])), Ok(vec![b"a".to_vec()]));
        assert!(parts("push", Value::Nil).is_err());
        assert!(parts("push", Value::Array(vec![Value::Int(1)])).is_err());
    }
}
