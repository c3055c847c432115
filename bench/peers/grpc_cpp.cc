// grpc_cpp: the same turns from Google's own C++ server, to compare with.
//
//   grpc_cpp PORTS_FILE
//   grpc_cpp --address HOST:PORT
//
// It is given every advantage that its documentation offers: the callback API, which is the
// recommended one for speed; write hints that let the transport gather a burst into few
// writes; the throughput optimization target; a large HTTP/2 write buffer; no compression; the
// events of the unpaced turn built once for the whole process. It checks no token, keeps no
// session and writes nothing to disk, all of which weir does; comparisons favour it.
//
// In a paced turn each chunk says its number and when it was sent, so that lateness can be
// told apart from transport by whoever looks.
#include "runtime.grpc.pb.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace rt = crawbl::agentruntime::v1;

namespace {

constexpr unsigned kChunks = 64;
constexpr char kTail[] = " the water goes on over the weir, to the mill, to sea...";
constexpr auto kPace = std::chrono::milliseconds(20);

using Clock = std::chrono::system_clock;

std::string Numbered(unsigned number, const std::string &tail) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%08u", number);
    return digits + tail;
}

rt::ConverseEvent Chunk(const std::string &text) {
    rt::ConverseEvent event;
    event.mutable_chunk()->set_agent_id("manager");
    event.mutable_chunk()->set_text(text);
    return event;
}

rt::ConverseEvent Usage() {
    rt::ConverseEvent event;
    auto *usage = event.mutable_usage();
    usage->set_agent_id("manager");
    usage->set_model("script");
    usage->set_prompt_tokens(10);
    usage->set_completion_tokens(64);
    usage->set_total_tokens(74);
    return event;
}

rt::ConverseEvent Done(const std::string &text) {
    rt::ConverseEvent event;
    event.mutable_done()->set_model("script");
    auto *turn = event.mutable_done()->add_turns();
    turn->set_agent_id("manager");
    turn->set_text(text);
    return event;
}

// The unpaced turn, the same for everyone.
const std::vector<rt::ConverseEvent> &BurstTurn() {
    static const std::vector<rt::ConverseEvent> turn = [] {
        std::vector<rt::ConverseEvent> events;
        std::string whole;
        for (unsigned n = 0; n < kChunks; n++) {
            events.push_back(Chunk(Numbered(n, kTail)));
            whole += events.back().chunk().text();
        }
        events.push_back(Usage());
        events.push_back(Done(whole));
        return events;
    }();
    return turn;
}

// One stream: read, answer, read again.
class Conversation : public grpc::ServerBidiReactor<rt::ConverseRequest, rt::ConverseEvent> {
  public:
    Conversation() {
        // Headers must not ride on a write with a hint: they would wait for it, and it for them.
        StartSendInitialMetadata();
        StartRead(&request_);
    }

    void OnReadDone(bool ok) override {
        if (!ok) {
            Finish(grpc::Status::OK);
            return;
        }
        sent_ = 0;
        total_ = 0;
        if (request_.message().rfind("paced", 0) == 0)
            total_ = static_cast<unsigned>(std::atoi(request_.message().c_str() + 5));
        whole_.clear();
        due_ = Clock::now();
        SendNext();
    }

    void OnWriteDone(bool ok) override {
        if (ok)
            SendNext();
        else
            Finish(grpc::Status::CANCELLED);
    }

    void OnCancel() override {
        alarm_.Cancel();
    }

    void OnDone() override {
        delete this;
    }

  private:
    void SendNext() {
        if (total_)
            SendPaced();
        else
            SendBurst();
    }

    void SendBurst() {
        const auto &turn = BurstTurn();
        if (sent_ == turn.size()) {
            StartRead(&request_);
            return;
        }
        grpc::WriteOptions options;
        if (sent_ + 1 < turn.size()) options.set_buffer_hint();
        StartWrite(&turn[sent_++], options);
    }

    void SendPaced() {
        if (sent_ == total_ + 2) {
            StartRead(&request_);
            return;
        }
        if (sent_ >= total_) {
            event_ = sent_++ == total_ ? Usage() : Done(whole_);
            StartWrite(&event_);
            return;
        }
        if (sent_ == 0) {
            SendChunk();
            return;
        }
        due_ += kPace;
        alarm_.Set(due_, [this](bool ok) {
            if (ok)
                SendChunk();
            else
                Finish(grpc::Status::CANCELLED);
        });
    }

    void SendChunk() {
        char stamp[64];
        auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       Clock::now().time_since_epoch())
                       .count();
        std::snprintf(stamp, sizeof(stamp), " %019lld", static_cast<long long>(now));
        std::string text = Numbered(sent_++, stamp);
        text.resize(64, '.');
        whole_ += text;
        event_.mutable_chunk()->set_agent_id("manager");
        event_.mutable_chunk()->set_text(text);
        StartWrite(&event_);
    }

    rt::ConverseRequest request_;
    rt::ConverseEvent event_;
    grpc::Alarm alarm_;
    Clock::time_point due_;
    unsigned sent_ = 0, total_ = 0;  // total_: chunks of a paced turn, 0 when unpaced
    std::string whole_;
};

class Runtime final : public rt::AgentRuntime::CallbackService {
    grpc::ServerBidiReactor<rt::ConverseRequest, rt::ConverseEvent> *
    Converse(grpc::CallbackServerContext *) override {
        return new Conversation;
    }
};

}  // namespace

int main(int argc, char **argv) {
    std::string address = argc == 3 ? argv[2] : "127.0.0.1:0";
    if (argc < 2) {
        std::fprintf(stderr, "grpc_cpp: PORTS_FILE or --address HOST:PORT\n");
        return 2;
    }
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);

    BurstTurn();
    Runtime service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
    builder.AddChannelArgument(GRPC_ARG_OPTIMIZATION_TARGET, "throughput");
    builder.AddChannelArgument(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 256 * 1024);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1 << 20);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server) return 1;
    if (argc == 2) {
        FILE *file = std::fopen(argv[1], "we");
        if (!file) return 1;
        std::fprintf(file, "{\"grpc\": %d}\n", port);
        std::fclose(file);
    }
    int signal_number = 0;
    sigwait(&stop, &signal_number);
    server->Shutdown(Clock::now() + std::chrono::seconds(1));
    return 0;
}
