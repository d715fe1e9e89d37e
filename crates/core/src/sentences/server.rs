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

    HeadTooSlow "head_too_slow"
        RequestTimeout
        detail("the head of the request did not come in time")
        hint("send the request again, faster");

    HeadTooLong "head_too_long"
        HeadTooLarge
        detail("the head of the request is too long")
        hint("send fewer and shorter headers, and a shorter query");

    NotHttp "not_http"
        BadRequest
        detail("the request is not HTTP as it is written down in RFC 9112")
        hint("send one length, or chunks that are whole, and headers of one line each");

    InClear "in_clear"
        BadRequest
        detail("the request is HTTP in clear, and this server speaks HTTPS")
        hint("write https:// instead of http:// in the address");

    TransferCoding "transfer_coding" { shown: String }
        BadRequest
        detail("the transfer coding {shown:?} is not one that the server takes")
        hint("send the body with its \"Content-Length\", or as \"Transfer-Encoding: chunked\" alone, and uncompressed");

    ContentCoding "content_coding" { shown: String }
        UnsupportedMediaType
        detail("the body has the content coding {shown:?}, and the server takes none")
        hint("send the body uncompressed, without the header \"Content-Encoding\"");

    BodyCutOff "body_cut_off"
        BadRequest
        detail("the request ended before its body did")
        hint("send it again");

    BodyTooSlow "body_too_slow"
        RequestTimeout
        detail("the body of the request did not come in time")
        hint("send the same call again, with the same ids, faster or in smaller parts");

    BodyNotTaken "body_not_taken" { bytes: u64 }
        TooLarge
        detail("the body has {bytes} bytes or more, and this call takes none")
        hint("send the call without a body");

    BodyTooLarge "body_too_large" { bytes: u64, most: usize }
        TooLarge
        detail("the body has {bytes} bytes or more, and {most} is the most")
        hint("send fewer items in one call; NDJSON may have any length, where it is taken");

    RequestTooLarge "request_too_large" { bytes: usize, most: usize }
        TooLarge
        detail("a body of {bytes} bytes is larger than {most}")
        hint("send fewer items in one call");

    TooManyStreams "too_many_streams" { most: usize }
        LineFull
        detail("{most} streams of events are being sent already")
        hint("ask again later, or read pages of /v1/events with \"wait\" instead of a stream")
        retry_after_s(1);

    BackupRuns "backup_runs"
        LineFull
        detail("this server sends a backup already")
        hint("wait until that one is over, or ask another server of the store")
        retry_after_s(10);

    TrailNotKept "trail_not_kept"
        WrongState
        detail("this server keeps no trail that can be read")
        hint("start the server with --trail DIR, or read the stderr of one with --trail -");

    TrailUnwritable "trail_unwritable"
        TrailUnwritable
        detail("the trail of this server cannot be written, and --trail-required refuses changes without it")
        hint("nothing happened; make room on the disk of the trail, or let the server write its folder: its log says what \
              is wrong")
        retry_after_s(5);

    TrailUnreadable "trail_unreadable"
        StoreUnavailable
        detail("the files of the trail cannot be read")
        hint("look at the folder of the trail: the log of the server says what is wrong");

    MediaType "media_type"
        UnsupportedMediaType
        detail("the content type of the body is not one that this call takes")
        hint("send the header \"Content-Type: application/json\"");

    MediaTypeOrLines "media_type_or_lines"
        UnsupportedMediaType
        detail("the content type of the body is not one that this call takes")
        hint("send the header \"Content-Type: application/json\" or \"application/x-ndjson\"");

    RouteNotFound "route_not_found" { path: String }
        RouteNotFound
        detail("there is nothing at {path:?}")
        hint("see /openapi.json for what there is; a name in a path is percent-encoded");

    MethodNotAllowed "method_not_allowed" { method: String, allowed: String }
        MethodNotAllowed
        detail("the method {method:?} does nothing here")
        hint("use {allowed}");

    NotLoopback "not_loopback"
        ForbiddenOrigin
        detail("the \"Host\" of the request is not a name of this machine's loopback")
        hint("call it as localhost, 127.0.0.1 or [::1]; to serve others, start the server with TENURE_TOKEN");

    PassedOn "passed_on"
        ForbiddenOrigin
        detail("a proxy has passed the request on, and this server asks its callers for no token")
        hint("start the server with TENURE_TOKEN or --token-file, or call it without the proxy");

    OtherOrigin "other_origin"
        ForbiddenOrigin
        detail("the request comes from a web page of another origin")
        hint("call the server from a program, or from its own pages");

    TokenWrong "token_wrong"
        Unauthorized
        detail("the token is not the server's")
        hint("{TOKEN_HEADER}");

    TokenMissing "token_missing"
        Unauthorized
        detail("the request shows no token")
        hint("{TOKEN_HEADER}");

    TokenRefused "token_refused" { place: String, status: u16 }
        Unauthorized
        detail("{place} answered {status}")
        hint("{TOKEN_SETTING}");

    OriginRefused "origin_refused" { place: String, status: u16 }
        ForbiddenOrigin
        detail("{place} answered {status}")
        hint("{TOKEN_SETTING}");

    NotOwner "not_owner"
        NotOwner
        detail("a server passed this call on to one that does not own the store, and a call is passed on once")
        hint("nothing happened; send the same call again after Retry-After")
        retry_after_s(1);

    Overloaded "overloaded"
        Overloaded
        detail("the server has as many bytes of bodies and unread answers in flight as it may")
        hint("nothing happened; send the same call again after Retry-After, in smaller parts, and read each answer at \
              once; the server's option --max-in-flight-bytes raises the bound")
        retry_after_s(1);

    AnswerNotWritten "answer_not_written"
        Internal
        detail("the server has a bug, and could not write its answer")
        hint("{REPEAT_AND_REPORT}");
}
