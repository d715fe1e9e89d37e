//! Asks the machine, and makes the reply from its answer.

use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::requests::{self, Operation, Reply, Request};
use tenure_engine_api::{CallError, Fault};
use tenure_machine::{Command, Done, Known};

use crate::batch::Answer;
use crate::calls::show::Show;
use crate::inbox::Ask;
use crate::shared::Shared;

pub(super) fn broken(name: &str) -> CallError {
    Fault::Broken(format!("{name} got another operation's answer")).into()
}

/// The machine's part of the reply to a request; `None` if it answered another operation.
pub(super) async fn known(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    request: Request,
) -> Result<Option<Known>, CallError> {
    let ask = Ask::Command(Box::new(Command::Request(request).by(by)));
    match shared.ask(ns, ask).await? {
        Answer::Done(Done::Request(known)) => Ok(Some(known)),
        _ => Ok(None),
    }
}

/// Asks for an operation, and makes its reply from the machine's answer.
pub(crate) async fn ask<O: Operation>(
    shared: &Shared,
    ns: &Namespace,
    request: O,
) -> Result<O::Reply, CallError> {
    ask_by(shared, ns, None, request).await
}

/// The same for a caller with a name, which events of the change carry.
pub(super) async fn ask_by<O: Operation>(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    request: O,
) -> Result<O::Reply, CallError> {
    let known = known(shared, ns, by, request.into()).await?.ok_or_else(|| broken(O::NAME))?;
    O::reply(reply(shared, ns, known).await?).ok_or_else(|| broken(O::NAME))
}

/// The reply of an operation, made from the machine's answer.
async fn shown<O: Operation>(
    known: impl Show<O::Reply>,
    shared: &Shared,
    ns: &Namespace,
) -> Result<Reply, CallError> {
    known.show(shared, ns).await.map(O::wrap)
}

macro_rules! replies {
    ($($request:ident)*) => {
        /// Makes the reply from the machine's answer.
        pub(super) async fn reply(shared: &Shared, ns: &Namespace, known: Known) -> Result<Reply, CallError> {
            match known {
                $(Known::$request(known) => shown::<requests::$request>(known, shared, ns).await),*
            }
        }
    };
}
tenure_core::each_operation!(replies);
