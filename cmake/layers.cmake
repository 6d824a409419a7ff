# The one table of allowed includes: a module may include itself and what its row names. CMake links by
# it and tests/structure/check_layers.py holds every #include against it.
#
#   TORCH  compiles with the precompiled ATen header
#   LIBS   libraries whose headers stay inside src/<module>/
yolohpc_add_module(base       USES                                   LIBS nlohmann_json::nlohmann_json)
yolohpc_add_module(boxes      USES base                              TORCH)
yolohpc_add_module(comm       USES base                              TORCH LIBS yolohpc_mpi)
yolohpc_add_module(monitor    USES base                              LIBS nlohmann_json::nlohmann_json)
yolohpc_add_module(optim      USES base                              TORCH)
yolohpc_add_module(data       USES base boxes comm                   LIBS yolohpc_hdf5 yolohpc_images nlohmann_json::nlohmann_json yolohpc_yaml)
yolohpc_add_module(model      USES base boxes                        TORCH LIBS yolohpc_yaml)
yolohpc_add_module(parallel   USES base comm optim                   TORCH)
yolohpc_add_module(checkpoint USES base comm                         LIBS nlohmann_json::nlohmann_json)
yolohpc_add_module(loss       USES base boxes model                  TORCH)
yolohpc_add_module(export     USES base model                        TORCH)
yolohpc_add_module(eval       USES base boxes comm data model        TORCH LIBS nlohmann_json::nlohmann_json)
yolohpc_add_module(train      USES base comm monitor optim data model parallel checkpoint loss eval TORCH LIBS nlohmann_json::nlohmann_json)
yolohpc_add_module(cli        USES base comm monitor optim data model parallel checkpoint loss export eval train LIBS Boost::program_options nlohmann_json::nlohmann_json)
