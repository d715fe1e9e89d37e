//! Refusals of the server itself, before and after it calls an engine; and of requests that cannot be sent to one.

use super::phrases::REPEAT_AND_REPORT;
use super::table::refusals;

/// Advice on the header of the token.
const TOKEN_HEADER: &str =
    "send the header \"Authorization: Bearer TOKEN\" with the server's TENURE_TOKEN";

/// Advice on the client's setting for the token.
const TOKEN_SETTING: &str = "give the server's token in TENURE_TOKEN";

refusals! {
    /// A request that the server, or the way to it, does not accept.
    ServerRefusal:

    HeadTooSlow RequestTimeout
        detail("the head of the request did not come in time")
        hint("send the request again, faster");

    HeadTooLong HeadTooLarge
        detail("the head of the request is too long")
        hint("send fewer and shorter headers, and a shorter query");

    NotHttp BadRequest
        detail("the request is not HTTP as it is written down in RFC 9112")
        hint("send one length, or chunks that are whole, and headers of one line each");

    InClear BadRequest
        detail("the request is HTTP in clear, and this server speaks HTTPS")
        hint("write https:// instead of http:// in the address");

    TransferCoding BadRequest { shown: String }
        detail("the transfer coding {shown:?} is not one that the server takes")
        hint("send the body with its \"Content-Length\", or as \"Transfer-Encoding: chunked\" alone, and uncompressed");

    ContentCoding UnsupportedMediaType { shown: String }
        detail("the body has the content coding {shown:?}, and the server takes none")
        hint("send the body uncompressed, without the header \"Content-Encoding\"");

    BodyCutOff BadRequest
        detail("the request ended before its body did")
        hint("send it again");

    BodyTooSlow RequestTimeout
        detail("the body of the request did not come in time")
        hint("send the same call again, with the same ids, faster or in smaller parts");

    BodyNotTaken TooLarge { bytes: u64 }
        detail("the body has {bytes} bytes or more, and this call takes none")
        hint("send the call without a body");

    BodyTooLarge TooLarge { bytes: u64, most: usize }
        detail("the body has {bytes} bytes or more, and {most} is the most")
        hint("send fewer items in one call; NDJSON may have any length, where it is taken");

    RequestTooLarge TooLarge { bytes: usize, most: usize }
        detail("a body of {bytes} bytes is larger than {most}")
        hint("send fewer items in one call");

    TooManyStreams LineFull { most: usize }
        detail("{most} streams of events are being sent already")
        hint("ask again later, or read pages of /v1/events with \"wait\" instead of a stream")
        retry_after_s(1);

    BackupRuns LineFull
        detail("this server sends a backup already")
        hint("wait until that one is over, or ask another server of the store")
        retry_after_s(10);

    TrailNotKept WrongState
        detail("this server keeps no trail that can be read")
        hint("start the server with --trail DIR, or read the stderr of one with --trail -");

    TrailUnwritable TrailUnwritable
        detail("the trail of this server cannot be written, and --trail-required refuses changes without it")
        hint("nothing happened; make room on the disk of the trail, or let the server write its folder: its log says what \
              is wrong")
        retry_after_s(5);

    TrailUnreadable StoreUnavailable
        detail("the files of the trail cannot be read")
        hint("look at the folder of the trail: the log of the server says what is wrong");

    MediaType UnsupportedMediaType
        detail("the content type of the body is not one that this call takes")
        hint("send the header \"Content-Type: application/json\"");

    MediaTypeOrLines UnsupportedMediaType
        detail("the content type of the body is not one that this call takes")
        hint("send the header \"Content-Type: application/json\" or \"application/x-ndjson\"");

    RouteNotFound RouteNotFound { path: String }
        detail("there is nothing at {path:?}")
        hint("see /openapi.json for what there is; a name in a path is percent-encoded");

    MethodNotAllowed MethodNotAllowed { method: String, allowed: String }
        detail("the method {method:?} does nothing here")
        hint("use {allowed}");

    NotLoopback ForbiddenOrigin
        detail("the \"Host\" of the request is not a name of this machine's loopback")
        hint("call it as localhost, 127.0.0.1 or [::1]; to serve others, start the server with TENURE_TOKEN");

    PassedOn ForbiddenOrigin
        detail("a proxy has passed the request on, and this server asks its callers for no token")
        hint("start the server with TENURE_TOKEN or --token-file, or call it without the proxy");

    OtherOrigin ForbiddenOrigin
        detail("the request comes from a web page of another origin")
        hint("call the server from a program, or from its own pages");

    TokenWrong Unauthorized
        detail("the token is not the server's")
        hint("{TOKEN_HEADER}");

    TokenMissing Unauthorized
        detail("the request shows no token")
        hint("{TOKEN_HEADER}");

    TokenRefused Unauthorized { place: String, status: u16 }
        detail("{place} answered {status}")
        hint("{TOKEN_SETTING}");

    OriginRefused ForbiddenOrigin { place: String, status: u16 }
        detail("{place} answered {status}")
        hint("{TOKEN_SETTING}");

    NotOwner NotOwner
        detail("a server passed this call on to one that does not own the store, and a call is passed on once")
        hint("nothing happened; send the same call again after Retry-After")
        retry_after_s(1);

    Overloaded Overloaded
        detail("the server has as many bytes of bodies and unread answers in flight as it may")
        hint("nothing happened; send the same call again after Retry-After, in smaller parts, and read each answer at \
              once; the server's option --max-in-flight-bytes raises the bound")
        retry_after_s(1);

    AnswerNotWritten Internal
        detail("the server has a bug, and could not write its answer")
        hint("{REPEAT_AND_REPORT}");
}
