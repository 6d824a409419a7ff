// Backoff: how a polling loop gives up its core.
#pragma once

namespace yolohpc::comm {

/// Each pause is longer than the one before: first the core is only offered to others (a short
/// collective is over by then), later the thread sleeps, up to a fifth of a millisecond, so that
/// compute threads of this and other ranks on the same cores are not slowed down.
class Backoff {
 public:
  void pause();

 private:
  int pauses_ = 0;
};

}  // namespace yolohpc::comm
