// Streams and events of the driver of the tests: what is enqueued runs when somebody waits for it, as late as it may.
//
// A stream goes on as far as it can before an earlier one has a turn, so that whatever does not wait for what it needs
// comes too early and leaves wrong data. Only streams that were created are like that; the others work at once.
#pragma once
#include <chrono>
#include <deque>
#include <functional>
#include <vector>

namespace queues {

struct Event {
    unsigned device;
    bool timed;
    std::chrono::steady_clock::time_point time{};
    unsigned long long asked = 0, done = 0;  // recordings
};

struct Entry {
    std::function<bool()> ready;
    std::function<void()> run;
};

struct Stream {
    unsigned device;
    std::deque<Entry> entries;
    void add(std::function<void()> run, std::function<bool()> ready = [] { return true; }) {
        entries.push_back({ready, run});
    }
};

inline std::vector<Stream *> streams;

// Whether everything ended; what is left waits for something that will not come.
inline bool drain() {
    for (bool moved = true; moved;) {
        moved = false;
        for (auto at = streams.rbegin(); at != streams.rend() && !moved; ++at) {
            auto &entries = (*at)->entries;
            while (!entries.empty() && entries.front().ready()) {
                const Entry entry = entries.front();
                entries.pop_front();
                entry.run();
                moved = true;
            }
        }
    }
    for (const Stream *stream : streams)
        if (!stream->entries.empty()) return false;
    return true;
}

}  // namespace queues
