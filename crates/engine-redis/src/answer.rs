//! How a request is answered: by one call of its function, or by a way of its own.
//!
//! A request that one call answers says what it sends in `encode` ([`OneCall`]); its reply is read by its type
//! ([`FromWire`]). The others are answered where their subject is: [`crate::jobs`], [`crate::holders`],
//! [`crate::lists`], [`crate::sync`], [`crate::waiting`].

use tenure_core::requests::{Operation, Reply, Request};
use tenure_engine::CallError;

use crate::by_itself;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, FromWire};
use crate::encode::OneCall;
use crate::function::Function;

/// A request that is answered here.
pub(crate) trait Answerable: Operation {
    /// Answers it.
    fn answer(self, caller: Caller) -> impl Future<Output = Result<Self::Reply, CallError>> + Send;
}

impl<O: OneCall + Sync> Answerable for O
where
    O::Reply: FromWire<Wire: Send>,
{
    async fn answer(self, caller: Caller) -> Result<O::Reply, CallError> {
        if self.begins_by_itself() {
            by_itself::note(&caller).await;
        }
        let function = Function::of::<O>();
        let Answered { reply, blobs, .. } = caller.ask(function, self.args()).await?;
        O::Reply::read(reply, &blobs).map_err(malformed(function))
    }
}

macro_rules! answers {
    ($($request:ident)*) => {
        /// Answers one request.
        pub(crate) async fn answer(caller: Caller, request: Request) -> Result<Reply, CallError> {
            match request {
                $(Request::$request(request) => request.answer(caller).await.map(Reply::$request)),*
            }
        }
    };
}
tenure_core::each_operation!(answers);
